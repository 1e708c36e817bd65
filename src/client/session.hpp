// SPDX-License-Identifier: BSD-3-Clause
// The objects behind the C API's handles. Internal to client/.
//
// One mutex per session guards slots, arena, queue and lists; completion is read without it. Operations that find no
// free slot or arena space wait in `queue`, private to the client, and are submitted in order as others finish: a
// posting call never blocks.
//
// One-sided operations that nobody holds a handle of are kept in `unclaimed` in the order of posting: they end in about
// that order, so looking at the first ones is enough, and their objects are used again.
#pragma once

#include "base/fd.hpp"
#include "base/memfd.hpp"
#include "client/address_tables.hpp"
#include "client/arena.hpp"
#include "client/described.hpp"
#include "client/heap.hpp"
#include "client/kept.hpp"
#include "client/life.hpp"
#include "client/mapping.hpp"
#include "client/moved/keep.hpp"
#include "client/moved/moved.hpp"
#include "client/notifier.hpp"
#include "client/submitter.hpp"
#include "client/successor.hpp"
#include "client/waits.hpp"
#include "session/layout.hpp"
#include "session/link.hpp"
#include "tasks/record.hpp"

#include <sys/types.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

struct offpath_op {
  offpath_op() = default;
  offpath_op(offpath_team& on, offpath::session::OpKind what, const char* known_as = "");

  offpath_session* session = nullptr;
  offpath_team* team = nullptr;
  offpath_window* window = nullptr;  // of windows and one-sided operations
  offpath::session::OpKind kind{};
  const char* name = "";  // for a person
  uint64_t sequence = 0;
  uint32_t target = 0;              // one-sided
  uint64_t address = 0, bytes = 0;  // memory to attach or detach; bytes of a transfer of a file, which are moved
  int32_t system_error = 0;         // of such a transfer
  // What goes into the segment: a collective's or program's record and its counters by member (Slot::open) behind it,
  // or a one-sided operation's record.
  std::vector<uint8_t> record;
  uint32_t flags = 0;
  bool lazy = false;                                 // need not wake the service while others are under way
  std::vector<offpath::client::OwnCopy> own_copies;  // own blocks that the service leaves to us
  std::unique_ptr<uint8_t[]> staging;                // in place: what was in the buffer when the operation was posted
  // Where it is. Written with the mutex held, looked at without.
  static constexpr uint32_t kQueued = UINT32_MAX;
  std::atomic<uint32_t> slot{kQueued};
  std::atomic<int32_t> status{OFFPATH_IN_PROGRESS};
  std::atomic<uint32_t> test_count{0};
  uint64_t record_offset = 0;         // arena offset
  offpath_op_times_t times{};         // if timed; struct_bytes 0: not known
  std::vector<offpath_op*> after;     // task or gate: what it comes after
  uint64_t after_offset = 0;          // where the record has their slots
  uint32_t pins = 0;                  // tasks that name it and have not ended, callers to be told: it stays as long
  offpath_task_result_t result{};     // task
  uint32_t function_number = 0;       // registration of a function
  bool memory_freed = false;          // task: while it was under way
  bool handed_on = false;             // task: to the session's successor, or its lists
  std::unique_ptr<offpath_op> again;  // task: the same there

  bool in_sequence() const { return does(kind, offpath::session::kInSequence); }  // of its team
  uint64_t open_offset() const;                                                   // arena offset of the counters
  void copy_own_blocks();                                                         // once
};

struct offpath_team {
  offpath_session* session = nullptr;
  uint64_t record = 0;  // arena offset
  uint32_t rank = 0;
  uint32_t size = 0;
  uint32_t nodes = 0;
  uint64_t addresses = 0;   // arena offset, as the next ones
  uint64_t address_of = 0;  // of each member
  uint64_t lost = 0;
  uint64_t next_sequence = 0;
  uint32_t unfinished = 0;
  uint32_t gates = 0;  // of these, what the next operations wait for
  bool destroyed = false;
  bool let_go = false;  // the service has forgotten it
};

struct offpath_window {
  offpath_session* session = nullptr;
  offpath_team* team = nullptr;
  offpath::client::moved::Keep memory;  // others may write it
  uint64_t record = 0;                  // arena offset
  std::atomic<uint64_t> submitted{0};   // operations that the service has been given
  std::atomic<uint64_t> dropped{0};     // that ended before it got them
  std::atomic<uint32_t> test_count{0};
  uint32_t unfinished = 0;
  bool destroyed = false;
  // client/kept.hpp. Under the session's mutex, but for what is atomic.
  bool keeps = false;
  bool given_up = false;
  std::atomic<bool> may_have_kept{false};
  std::atomic<bool> all_over{false};     // the service is lost, and nothing of it is under way any more
  offpath_status_t failed = OFFPATH_OK;  // the first failure but losses that no flush has told
  std::vector<offpath::client::Kept> kept;
  uint64_t journal = 0;           // arena offset; 0: there is none
  std::vector<uint64_t> atomics;  // by target: so many were posted

  // Of those that were dropped, what completed() counts, and what comes after one that the service still works on.
  mutable std::mutex ahead_mutex;  // a leaf
  mutable std::atomic<bool> any_ahead{false};
  mutable std::atomic<uint64_t> counted{0};
  mutable std::set<uint64_t> ahead;

  void keep(offpath_op& op, bool may_be_done);
  void drop(uint64_t sequence);
  // A one-sided operation has ended: keeps it, or notes its failure, where that is to be.
  void note_end(offpath_op& op, offpath_status_t status);
  uint64_t next_atomic(uint32_t target) {
    if (atomics.size() <= target) atomics.resize(target + 1);
    return atomics[target]++;
  }
  offpath::session::WindowRecord& shared() const;
  uint64_t issued() const { return shared().issued.load(std::memory_order_acquire); }
  // The first so many are over.
  uint64_t completed() const;
};

struct offpath_file {
  offpath_session* session = nullptr;
  uint32_t number = 0;
};

struct offpath_function {
  const offpath_session* session = nullptr;
  uint32_t number = 0;            // of the service; after its loss of nobody
  std::string name;               // of its tasks, for a person
  offpath::tasks::Function said;  // as it was registered

  offpath_function_params_t params() const;
};

struct offpath_session {
  explicit offpath_session(offpath::base::Memfd memory);
  ~offpath_session();

  offpath::session::SegmentHeader& header() const;
  offpath::session::Slot& slot(uint32_t index) const;
  offpath::session::TeamRecord& team_record(const offpath_team& team) const;
  template <typename T>
  T* at(uint64_t offset) const {
    return reinterpret_cast<T*>(segment.data() + offset);
  }

  // False in a forked child: the session belongs to the parent.
  bool mine() const { return fork_mark != nullptr && *fork_mark == 1; }
  // Of a lost session with nothing in it, with the mutex held: gives back what a job that is restarted often would have too much of. The
  // handle stays valid.
  void shrink();

  // Another service is in its service's place.
  bool leaves() const { return header().leaves.load(std::memory_order_acquire) != 0; }

  // All with the mutex held.
  // Nothing of it is at its service.
  bool is_empty() const;
  offpath_status_t post(std::unique_ptr<offpath_op> op, offpath_op** out);
  // Before anything is posted that names memory. `comes_after`: something under way that may write it.
  void use_memory(offpath::client::moved::Named named, bool comes_after);
  offpath_status_t post_kept(std::unique_ptr<offpath_op> op, offpath_op** out);
  bool submit(offpath_op& op);  // false: no slot or no arena space now
  void ring();
  // Whoever sleeps in offpath_session_sleep, or is about to with a number of events from before. Without the mutex, too.
  void wake_sleepers() const;
  void ring_late() {
    if (unrung > 0) ring();
  }
  void drain_queue();
  bool harvest();  // takes results nobody has asked for yet, to free their slots
  void submit_queued();
  void reap_orphans();
  bool has_gate(const offpath_team& team);  // its next operations may have to wait
  void reap_unclaimed();
  std::unique_ptr<offpath_op> take_op();  // a new one, or one that was used
  // Whether the service or somebody the operation needs is known to be lost.
  bool hopeless(const offpath_op& op) const;
  // Takes the result out of the slot if there is one; returns the operation's status.
  offpath_status_t settle(offpath_op& op);
  void finish(offpath_op& op, offpath_status_t status);
  void take_times(offpath_op& op) const;
  // task.cpp
  // Posts what comes after `after`. The mutex is held.
  offpath_status_t post_after(std::unique_ptr<offpath_op> op, std::span<offpath_op_t* const> after, offpath_op** out);
  void name_after(offpath_op& op);
  static void release_after(offpath_op& op);
  void take_result(offpath_op& op) const;
  void take_file_result(offpath_op& op) const;  // file.cpp
  // What the service has been given, and what waits for room; it may end while it is looked at.
  void for_each_posted(const std::function<void(offpath_op&)>& look);
  // Notes which tasks under way use such memory. Whether there is one.
  bool fail_users(uint64_t address, uint64_t bytes);
  void free_memory(uint64_t offset);             // of the heap
  void give_back(uint64_t at, uint64_t length);  // pages of the segment
  bool provide(uint64_t at, uint64_t length);
  void free_late();
  void release_team(offpath_team* team);
  void release_window(offpath_window* window);
  // Ends all of its operations whose end is known.
  void settle_all(offpath_window& window);

  std::mutex mutex;
  offpath::base::Memfd segment;
  offpath::client::Life life;
  offpath::session::AttachReply service{};
  uint64_t probe = 0;            // the service reads it to prove that it may
  uint8_t* fork_mark = nullptr;  // a page the kernel clears in forked children
  offpath::client::Arena arena;
  offpath::client::Heap heap;                                   // of the shared memory
  std::unique_ptr<offpath::client::moved::Moved> moved_memory;  // set when attached; null: nothing is moved
  std::shared_ptr<offpath::base::Fd> lent_file;  // for memory that is lent, which may outlive the session
  uint64_t lends_up_to = offpath::client::Mapping::from_environment().lends_up_to;
  uint64_t lent_count = 0, lent_bytes = 0;  // ever
  std::vector<uint32_t> free_slots;
  std::vector<offpath_op*> by_slot;
  std::deque<offpath_op*> queue;
  std::vector<std::unique_ptr<offpath_op>> orphans;  // freed by the caller, or ours, and not finished
  std::deque<std::unique_ptr<offpath_op>> unclaimed;
  std::vector<std::unique_ptr<offpath_op>> spare;
  std::vector<std::unique_ptr<offpath_team>> teams;
  offpath::client::AddressTables address_tables;
  std::vector<std::unique_ptr<offpath_window>> windows;
  offpath_team own;  // of operations that are no team's: this session alone
  std::vector<std::unique_ptr<offpath_function>> functions;
  uint64_t next_task = 0;
  uint64_t next_transfer = 0;
  std::vector<bool> file_numbers;                         // that are taken
  std::unique_ptr<offpath::client::Notifier> notifier;    // made when somebody wants it
  std::unique_ptr<offpath::client::Submitter> submitter;  // made when an operation waits in the queue
  std::unique_ptr<offpath::client::Successor> successor = std::make_unique<offpath::client::Successor>(*this);
  uint32_t stays = 0;  // client/next_session.hpp
  // Of the session whose place this one takes; by this pointer, as that one's is gone while it ends this one.
  offpath::client::Successor* made_by = nullptr;
  offpath_attach_params_t params{};
  std::string service_cores;                  // that params names
  offpath::client::waits::Noted noted_waits;  // inside MPI
  bool tasks_stay_home = false;               // OFFPATH_TASK_BALANCE=off
  std::vector<uint64_t> to_free;              // offsets of the heap: the program has freed them, but tasks use them
  std::atomic<bool> timing{false};
  uint64_t posted_count = 0;
  uint64_t doorbell_count = 0;
  static constexpr uint32_t kMaxUnrung = 64;
  uint32_t unrung = 0;                   // submitted since the service was last made sure to be awake
  std::atomic<uint32_t> outstanding{0};  // written with the mutex held
};
