// SPDX-License-Identifier: BSD-3-Clause
// What one rank did in MPI and when, for a file of its own (part.hpp). Every operation, or a sample of them: of those
// that are posted on one communicator (or window) from one call site the first and then each n-th one. Of waits those
// that waited for an operation that is recorded; the others are counted. All members of a communicator that post from
// the same places have the same sample.
//
// Threads: any; calls take a lock. Fails by falling silent: then there is no end.
#pragma once

#include "mpi/native/native.hpp"
#include "mpi/recording/callers.hpp"
#include "mpi/recording/decision.hpp"
#include "mpi/recording/layer.hpp"
#include "mpi/recording/part.hpp"
#include "mpi/recording/user_regions.hpp"

#include <offpath/offpath.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace offpath::mpi::recording {

// A call as it is recorded. Times in ns since the clock was started.
struct Call {
  const char* name = "";  // of the MPI function, without MPI_
  uint64_t begin_ns = 0;
  const void* site = nullptr;  // return address in the program
};

// What a call of a collective, a one-sided operation or a message says of the operation.
struct Posted {
  const char* kind = "";  // as the policy names it, or put, get, accumulate, fetch, isend, irecv
  uint64_t bytes = 0;     // as policy::Table::choose means it; the model's irregular ones have sent_bytes
  int root = 0;           // one-sided: the target; of a message who it goes to or comes from, -1: anybody
  std::vector<uint64_t> sent_bytes;
  bool message = false;
  int tag = 0;  // of a message; -1: any
};

// An operation that is about to be posted.
struct Ticket {
  uint64_t operation = kUnrecorded;  // its number
  uint32_t communicator = 0;
  uint32_t nth = 0;  // on it

  bool recorded() const { return operation != kUnrecorded; }
};

class Log {
 public:
  // At the end of MPI_Init, on all ranks: one zero for their clocks, and the file for this rank. `prefix`: its path but
  // for the rank.
  void start(const char* prefix, const Purpose& purpose);
  // The program's part ended at `end_ns`.
  void stop(uint64_t end_ns);
  // Before the native MPI_Finalize, after stop, on all ranks that started: what ranks recorded that cannot open their
  // files goes over MPI to one that can, which writes them.
  void hand_in();
  void stop() { stop(since_start_ns()); }
  bool on() const { return on_.load(std::memory_order_relaxed); }
  static uint64_t now_ns();
  uint64_t since_start_ns() const { return now_ns() - start_ns_; }

  // Before the call: is it to be recorded?
  Ticket choose(MPI_Comm comm, const void* site);
  Ticket choose_remote(MPI_Win window, const void* site);
  Ticket choose_persistent(MPI_Request request, const void* site);
  Ticket choose_message(MPI_Comm comm, const void* site);
  // After it: `request` then stands for the operation, recorded or not (null: it is done). `posted` counts only if it
  // is recorded.
  void post(const Call& call, const Ticket& ticket, const Posted& posted, bool blocking, const MPI_Request* request);
  void post_persistent(const Call& call, const Ticket& ticket, MPI_Request request);
  void post_remote(const Call& call, const Ticket& ticket, const Posted& posted, MPI_Win window,
                   const MPI_Request* request);
  void remember_persistent(MPI_Request request, const Posted& posted, MPI_Comm comm);

  // What the service did of it; the times are of now_ns().
  void serve(uint64_t operation, const offpath_op_times_t* times, int status);
  // These requests are done (complete), or none is. Requests of what is not recorded are left out.
  void wait(const Call& call, std::span<const MPI_Request> done, bool complete);
  // Operations to `target` (-1: to all) that no flush has waited for yet are done.
  void wait_remote(const Call& call, MPI_Win window, int target);

  // A region that the program names begins or ends.
  void mark_region(uint32_t thread, std::string_view name, bool begins);

  void remember_window(MPI_Win window, MPI_Comm comm);
  void forget_window(MPI_Win window);
  void forget_communicator(MPI_Comm comm);

  Callers callers;

 private:
  struct Communicator {
    uint32_t number = 0;
    uint32_t count = 0;     // operations so far, on all members alike
    uint32_t messages = 0;  // so far, this process's
  };
  struct Persistent {
    Posted posted;
    MPI_Comm comm;
    const char* why;  // as decided when it was made
  };
  struct Remote {
    MPI_Win window;
    int target;
    uint64_t operation;
  };
  void open(const char* prefix, const Purpose& purpose);
  // `count`: of those of its kind.
  Ticket choose_locked(const Communicator& on, uint32_t& count, const void* site);
  Communicator& known(MPI_Comm comm);
  void write_operation(const Call& call, const Ticket& ticket, const Posted& posted, bool blocking);
  void write_wait(const Call& call, bool complete, uint32_t others);
  void remember(MPI_Request request, uint64_t operation);
  // Appends its operation to operations_, or counts it in others.
  void take(MPI_Request request, uint32_t& others);

  std::mutex mutex_;
  MPI_Comm comm_ = MPI_COMM_NULL;  // of all ranks, and of nobody else's messages
  std::string prefix_;
  std::atomic<bool> on_{false};
  bool polls_ = true;
  uint64_t sample_ = 1;
  Part part_;
  UserRegions user_regions_;
  uint64_t start_ns_ = 0;
  uint64_t next_operation_ = 0;
  uint64_t operations_left_out_ = 0;
  uint64_t waits_left_out_ = 0;
  uint32_t next_communicator_ = 0;
  std::map<MPI_Comm, Communicator> communicators_;
  std::map<MPI_Win, Communicator> windows_;
  std::unordered_map<MPI_Request, uint64_t> requests_;
  std::unordered_map<MPI_Request, uint64_t>::node_type spare_;  // of the one forgotten last: saves an allocation
  std::map<MPI_Request, Persistent> persistent_;
  std::unordered_map<uint64_t, uint64_t> posted_from_;  // by call site and communicator, while there is a sample
  std::vector<Remote> remote_;
  std::vector<uint64_t> operations_;  // of the wait that is being written
};

extern Log log;

}  // namespace offpath::mpi::recording
