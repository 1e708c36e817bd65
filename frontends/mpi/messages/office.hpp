// SPDX-License-Identifier: BSD-3-Clause
// The job's point-to-point messages whose payloads go through the services (docs/design/0019-point-to-point.md): the window
// into which they are put, and what this process has granted to others, and they to it.
//
// A process has an entry for every other one in its part of the window, which that one writes: the region that is granted
// to this process there, how much of it was taken out, for how many bytes the other one wishes a region here, and which one it
// has left. A region whose payloads were all taken out a while ago is replaced, so that its memory can go.
//
// After a loss each process opens another window in its next session, if all have one, and grants anew
// (docs/design/0044-recovery.md). Regions that were granted before stay for what lies there, and get nothing more. When all of
// it was taken out, that window goes.
//
// Threads: open and close by the thread that calls MPI_Init and MPI_Finalize, the rest any.
#pragma once

#include "mpi/lanes/comeback.hpp"
#include "mpi/messages/counts.hpp"
#include "mpi/messages/granted.hpp"
#include "mpi/messages/kept.hpp"
#include "mpi/lanes/outbox.hpp"
#include "mpi/messages/pool.hpp"
#include "mpi/messages/resending.hpp"
#include "mpi/messages/ring.hpp"
#include "mpi/messages/routes.hpp"
#include "mpi/messages/ticket.hpp"

#include <offpath/offpath.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace offpath::mpi {

class Office {
 public:
  static constexpr uint64_t kMostBytes = INT32_MAX;  // of a payload: it may have to be one native message
  // Collective over the job; the same on all ranks. False: all messages are native. Inside.
  bool open();
  void close();
  bool on() const { return on_.load(std::memory_order_acquire); }
  void turn_off() { on_.store(false, std::memory_order_release); }

  const Mark& mark() const { return mark_; }
  // The shortest message that may get a ticket.
  uint64_t least_bytes() const { return least_bytes_; }
  // Whether the policy has the service carry a message of that length to or from that rank of MPI_COMM_WORLD.
  bool offloads(int peer, uint64_t bytes) const;

  // Some member of the job, or its service, was lost, and this process's may have given up others' operations with it. From
  // the first time on.
  bool has_lost();
  bool has_lost_process(int peer) const;

  // ---- as a sender
  struct Sending {
    Ticket ticket;
    offpath_op_t* op = nullptr;
    std::unique_ptr<uint64_t> signal;  // the operation reads it
    Payload payload = {};              // as the caller knows it
  };
  // Whether one of that length has room there now. If not, its receiver hears of it.
  bool has_room(int to, uint64_t bytes);
  // Starts the payload on its way. `send`: its block, `layouts` what that refers to, `element` what it is made of. Nothing:
  // it must go natively. May throw bad_alloc; then nothing was started.
  std::optional<Sending> start(int to, bool synchronous, const offpath_block_t& send, const offpath_layout_t* layouts,
                               offpath_element_t element);
  // The library says that a synchronous send's ticket was received: whether a receive of the program's has matched it.
  bool received(int to, uint64_t synchronous);
  // Its number may be another one's.
  void forget(int to, uint64_t synchronous);
  // The synchronous sends to there that are under way, as Entry, once no more will begin.
  std::optional<uint64_t> last_sends(int to);
  // Of a status of the operation.
  static int code_of(offpath_status_t status);
  // No put is under way any more, or will ever end. Moves them on.
  bool quiet();

  // ---- as a receiver
  // Whether what a call of the program's receives from there may be a ticket.
  bool may_reach(int from) const;
  // Whether that rank of MPI_COMM_WORLD sends any here.
  bool may_send_tickets(int from) const;
  // Where the payload of a ticket lies, or will; nullptr: the ticket names what was not granted.
  // `again`: it is sent another time, while a service may still write the first one.
  std::byte* find(const Ticket& ticket, bool again = false);
  static bool arrived(const Ticket& ticket, const std::byte* payload);
  // It came natively.
  static void note_arrival(const Ticket& ticket, std::byte* payload);
  // It was released.
  bool was_taken(const Ticket& ticket);
  // The payload was taken out.
  void release(const Ticket& ticket);
  // A ticket of a synchronous send from there is about to be received by a probe: its sender knows when this returns. Waits
  // for services; once one is lost for the sender, too. False: it is none. The other one: a receive has matched it, or it
  // was none.
  bool hold(int from, uint64_t synchronous);
  void let_go(int from, uint64_t synchronous);
  // Those that are held: as Entry.
  uint64_t held_from(int from);
  // A message from that rank that the policy gives to the service came natively: it may get a region for the next one.
  void consider(int from);

  // Open while it is.
  Routes routes;
  KeptMessages kept_messages;
  Outbox outbox;
  Resending resending;
  MessageCounts counts;

  // That payloads have filled at a time.
  uint64_t staging_bytes() const { return most_used_bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kLeastRegion = 1 << 20;
  static constexpr uint64_t kMessagesOfARegion = 4;
  // Of the number of a synchronous send; 0: it is none.
  static uint64_t bit_of(uint64_t synchronous) { return synchronous == 0 ? 0 : uint64_t{1} << (synchronous - 1); }

  // Written by the other process's service at any time.
  struct Grant {
    static uint64_t check_of(uint64_t number, uint64_t address, uint64_t bytes) { return ~(number ^ address ^ bytes); }
    uint64_t number = 0;  // from 1
    uint64_t address = 0;
    uint64_t bytes = 0;
    uint64_t check = 0;  // all bits of the others: it was written whole
  };
  struct alignas(64) Entry {
    Grant grant;
    uint64_t taken;  // as RingWord
    uint64_t wish;   // bytes
    uint64_t held;   // synchronous sends to there whose tickets were received, but by probes only: bit number - 1
    uint64_t left;   // as RingWord: the region there that this process has used before, and how far
  };
  struct Outgoing {
    uint64_t region = 0;
    uint64_t address = 0;
    RingAllocator ring;
    uint64_t before = 0;  // how far the region before that was used
    uint64_t sent = 0;
    uint64_t wished = 0;
    uint64_t synchronous = 0;  // those under way: bit number - 1

    // No room until the next grant, which has a higher number.
    Departure forget_region() {
      wished = 0;
      return {region, std::exchange(ring, RingAllocator()).head(), before};
    }
  };
  struct Incoming {
    Granted granted;
    uint64_t refused = 0;  // so long a message found no memory
    uint64_t used_ns = 0;  // when anything was taken out
    uint64_t held = 0;     // as its sender is told
    bool holds = false;    // something was held
  };

  // This process's team, window and table in it; *table: where that lies, 0: there is none.
  bool open_own(offpath_session_t* session, const attach::Directory& directory, uint64_t* table);
  bool agree(bool own) const;
  void grant_to_all();
  // In a job of few processes: room before it is asked for. With the mutex, as what follows.
  void grant_early(int to);
  bool grant(int to, Incoming& in, uint64_t bytes);
  // Takes in what that sender has left.
  void gather(int from, Incoming& in);
  void give_back(const Granted::Region& region);
  // Now and then: gives back what was not used for a while.
  void tidy();
  void listen();
  void say_held_to_all();
  // The team that is used now has lost a member, or a service.
  bool broken() const;
  // How each process is known to be lost there, as an offpath_loss_t; empty: none is.
  std::vector<uint8_t> losses() const;
  // After a loss, step by step.
  void come_back();
  void open_again();
  void take_opened();
  // Windows before, to which nothing comes any more, and in which nothing lies.
  void leave_past();
  void take_grant(int from, Outgoing& out);
  // Of what that one has granted. Nothing: it has no room now, and hears of it.
  std::optional<RingAllocator::Stretch> allocate(int to, Outgoing& out, uint64_t bytes);
  void wish(int to, Outgoing& out, uint64_t bytes);
  // 8 bytes or more, at once, into this process's entry there.
  offpath_status_t put(int to, size_t field, const void* data, uint64_t bytes, offpath_op_t** op = nullptr);

  std::atomic<bool> on_{false};
  Mark mark_{};
  uint64_t least_bytes_ = 0;
  bool near_ = false;  // also from ranks of this node
  bool far_ = false;
  std::atomic<bool> has_lost_{false};
  bool said_held_ = false;    // after a loss
  uint64_t early_bytes_ = 0;  // what each sender gets at the beginning; 0: there are too many
  uint64_t tidied_ns_ = 0;
  std::atomic<uint64_t> most_used_bytes_{0};
  // What is used now; another one after a loss, and only then. Written with the mutex held.
  std::atomic<offpath_session_t*> session_{nullptr};
  std::atomic<offpath_team_t*> team_{nullptr};
  offpath_window_t* window_ = nullptr;
  std::atomic<Entry*> table_{nullptr};  // by rank; shared with the service
  std::vector<uint64_t> tables_;        // of all ranks: where they lie; 0: not open
  const Entry* first_table_ = nullptr;  // of the beginning; nullptr: it was left
  std::vector<uint64_t> first_held_;    // by rank: what it said then
  std::array<uint8_t, OFFPATH_TEAM_ID_BYTES> team_id_{};

  // Of the next loss: what is said about it, whether this process has opened another window since, and how many others have.
  struct Opened {
    uint64_t table = 0;  // 0: it could not
    Departure left = {};
  };
  struct Past {
    offpath_session_t* session;
    offpath_team_t* team;
    offpath_window_t* window;
    Entry* table;
    Pool pool;
  };
  void put_away();
  static void close(Past& past, bool with_memory);
  uint64_t losses_ = 0;
  std::unique_ptr<Comeback> comeback_;
  Breaks breaks_;
  bool has_opened_ = false;
  bool cannot_open_ = false;        // though its service lives
  std::vector<Opened> own_opened_;  // for each rank
  int others_opened_ = 0;
  std::vector<Past> past_;

  std::mutex mutex_;  // over what follows
  Pool pool_;
  uint64_t used_bytes_ = 0;
  std::unordered_map<int, Outgoing> outgoing_;
  std::unordered_map<int, Incoming> incoming_;
};

extern Office office;

}  // namespace offpath::mpi
