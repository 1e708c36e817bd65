// SPDX-License-Identifier: BSD-3-Clause
// Messages that probes have taken out of the library's queues, to see whether they are tickets: there the native probe
// shows a ticket's length. They are kept as messages of the library (MPI_Mprobe), in the order of their arrival, and what
// receives or probes next on the communicator looks here first. All that a sender has sent before one that is taken out is
// taken out, too, so what the library still has of that sender came later.
//
// With several threads a receive may be on its way into the library while another thread probes: what that is to receive
// stays there, as nobody might ever ask for it again.
//
// What is taken out counts as received in the library, which completes a synchronous send. So its sender is told before
// that this one is only held (Office::hold), and again when a receive of the program's has matched it.
//
// Threads: any. The lock is held during native calls that do not wait, and until a sender's service has heard of a hold.
#pragma once

#include "mpi/messages/routes.hpp"
#include "mpi/messages/ticket.hpp"

#include <mpi.h>

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace offpath::mpi {

// Gives the program a status; its MPI_ERROR is only for functions that complete several requests.
inline void show(const MPI_Status& from, MPI_Status* to) {
  if (to == MPI_STATUS_IGNORE) return;
  const int error = to->MPI_ERROR;
  *to = from;
  to->MPI_ERROR = error;
}

// A message that was matched and not received yet.
struct Matched {
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status{};  // as the program is to see it
  RouteRef route;
  bool again = false;  // the library has it from ourselves: its own status says nothing about where it came from
  uint64_t held = 0;   // the sender waits for its receive: number of the synchronous send

  // Gives a status of its receive what the program is to see.
  void correct(MPI_Status* received) const {
    if (!again) return;
    received->MPI_SOURCE = status.MPI_SOURCE;
    received->MPI_TAG = status.MPI_TAG;
  }
};

class KeptMessages {
 public:
  // MPI error code. Inside.
  int open(bool several_threads);
  void close();
  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }

  // As MPI_Iprobe; MPI error code of the library. May throw bad_alloc.
  int probe(int from, int tag, const RouteRef& route, MPI_Comm comm, int* found, MPI_Status* status);
  // As MPI_Improbe.
  int match(int from, int tag, const RouteRef& route, MPI_Comm comm, int* found, Matched* matched);
  struct Wanted {
    int from, tag;
    MPI_Comm comm;
  };
  // A receive of the library's, from before it is there until it is posted, or has returned.
  class Posting {
   public:
    Posting() = default;
    Posting(const Posting&) = delete;
    Posting& operator=(const Posting&) = delete;
    ~Posting();

   private:
    friend class KeptMessages;
    std::optional<std::list<Wanted>::iterator> place_;
  };
  // One that was kept, if a receive matches it; else the receive is to be posted while `posting` lives.
  std::optional<Matched> take(int from, int tag, MPI_Comm comm, Posting* posting);

  // Messages that the program has in its hands.
  void hand_out(const Matched& matched);
  std::optional<Matched> take_back(MPI_Message message);

 private:
  using List = std::list<Matched>;
  static bool matches(const Matched& kept, int from, int tag, MPI_Comm comm);
  void note(Posting* posting, const Wanted& wanted) noexcept;
  bool is_wanted(const MPI_Status& status, MPI_Comm comm) const;
  List::iterator find(int from, int tag, MPI_Comm comm);
  void look_into(Matched& matched);
  void send_again(const TicketBytes& bytes, int length, Matched& matched);
  // A receive has matched it.
  static void let_go(Matched& matched);

  std::atomic<size_t> count_{0};
  std::mutex mutex_;
  List kept_;
  std::list<Wanted> wanted_;
  bool several_threads_ = false;
  std::unordered_map<uintptr_t, Matched> handed_out_;
  MPI_Comm self_ = MPI_COMM_NULL;  // for sends to ourselves
};

}  // namespace offpath::mpi
