// SPDX-License-Identifier: BSD-3-Clause
// How an offloaded window leaves the services when one of them is lost, for good and at all members
// (docs/design/0044-recovery.md, Windows): from then on each member's process serves its own part ("at home"), and its
// operations, locks included, go there as letters.
//
// States: at the services, until this member hears of a loss, by itself or from another member; turned, while its service lets
// go of its part; at home.
// Threads: any. Its lock is held during native calls, in which nobody comes back here: they are Inside.
#pragma once

#include "mpi/lanes/service_team.hpp"
#include "mpi/rma/at_home.hpp"
#include "mpi/rma/letters.hpp"
#include "mpi/rma/redoing.hpp"

#include <mpi.h>
#include <offpath/offpath.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace offpath::mpi {

// A lock of this process's on a member's part.
struct LockWish {
  int target = 0;
  bool exclusive = false;
  offpath_op_t* op = nullptr;  // at the service; nullptr: it refused that
  uint64_t question = 0;       // at home; 0: not asked there
};

class Homecoming {
 public:
  // `window`: its operations are kept (client/kept.hpp). What it is given lives longer.
  Homecoming(offpath_window_t* window, const ServiceTeam& team, MPI_Comm comm, int rank, int size, AtHome part);
  ~Homecoming() { close(); }

  // For good. A load.
  bool has_turned() const { return turned_.load(std::memory_order_acquire); }
  // Moves all on, answers other members, and looks for losses now and then. Never waits. What there is no memory for is left to a
  // later call.
  void attend();

  // ---- operations
  // So many, from the first one posted, are over: at the service, or here.
  uint64_t over();
  // What became of one whose end at the service was `status`.
  offpath_status_t outcome_of(uint64_t sequence, offpath_status_t status);
  // As of Redoing.
  offpath_status_t take_failure(uint64_t through, bool may_ask);
  // So many of them that a program which posts more should wait.
  bool is_full();

  // ---- locks
  // Moves a lock on: in progress; granted, or refused for good. The wish's op is freed then.
  offpath_status_t advance(LockWish& wish);
  // Gives one back. 0: the service is to be told. Else a question, to be answered.
  uint64_t unlock(int target);
  offpath_status_t answer_to(uint64_t question);

  // ---- the own part, of a window that is dynamic. False: as of Home.
  bool attach(const void* base, uint64_t bytes);
  bool detach(const void* base);
  // The service is not at it any more, and has not been told of the memory from here on.
  bool is_home();

  // ---- the end, once no operation is left. stay: this member turns no more by itself; whether it has. After that all agree
  // whether any has; then all turn, and nobody closes before it has heard all others.
  bool stay();
  void turn_now();
  bool has_heard_all();
  void close();

 private:
  using Held = AtHome::Held;
  enum class State : uint8_t { at_services, turned, at_home };

  // All under the lock.
  void attend_to_all();
  void turn();
  void say_holds();
  void look();
  void say_why() const;
  bool collect();
  void take_letters();
  void take(Letter& letter);
  void take_holds(const Letter& letter);
  void take_granted(const Letter& letter);
  void give_up_part();
  void forget_lost();
  uint64_t ask(int target, Letter::Said said);
  offpath_status_t answer_of(uint64_t question);

  struct Asked {
    int target;
    offpath_status_t status;
  };

  offpath_window_t* const window_;
  const ServiceTeam& team_;
  const int rank_;
  std::mutex mutex_;
  std::atomic<bool> turned_{false};
  State state_ = State::at_services;
  bool stays_ = false;
  uint64_t looked_ns_ = 0;
  bool closed_ = false;
  Letters letters_;
  AtHome part_;
  std::vector<client::Kept> kept_;  // not in there yet
  Redoing redoing_;
  std::vector<Held> held_;      // by member: what this process has locked there
  int said_holds_ = 0;          // to so many members
  std::vector<bool> has_told_;  // by member: what it has locked here
  std::vector<bool> is_lost_;   // by member: its process
  bool gives_up_ = false;       // the service was asked to
  offpath_op_t* giving_up_ = nullptr;
  uint64_t last_question_ = 0;
  std::unordered_map<uint64_t, Asked> asked_;  // questions after locks
};

}  // namespace offpath::mpi
