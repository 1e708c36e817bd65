// SPDX-License-Identifier: BSD-3-Clause
// A communicator whose operations may be offloaded: the service's team, the shadow communicator for what must be said
// or done natively behind the application's back, and the operations under way. A persistent collective has one of its
// own, as it may be started in another order on every rank.
//
// Phases: offloading -> cutting (a service was lost, the ranks agree what is done again) -> settled (that goes natively to
// the shadow communicator, as the ranks do not learn of the cut at the same moment; what comes later waits until the ranks
// know whether all have a service again) -> offloading, with the next team, or -> host (terminal: native). Or cutting -> dead
// (terminal; the ranks could not agree, operations are errors).
//
// A process that is lost never agrees. Where the library tells programs of it so that they go on, the lane is dead on each rank as
// soon as that has told there, or that the program has revoked the communicator. What the service tells before waits for that.
//
// A service that leaves is no loss: the lane is offloading all the time. Each rank says where it is from now on (comeback.hpp), and what
// comes after all that anybody had been asked for goes to the next team, once what is before that has ended here. A service that is
// lost meanwhile: as ever, by the words of the same turn. Who has gone on already has ended all of it, and says that
// when it is asked.
//
// Threads: under the offloader's lock, except where noted.
#pragma once

#include "mpi/adapt/adapter.hpp"
#include "mpi/calls/neighborhood.hpp"
#include "mpi/lanes/comeback.hpp"
#include "mpi/lanes/cut.hpp"
#include "mpi/lanes/errors.hpp"
#include "mpi/lanes/posted_call.hpp"
#include "mpi/lanes/service_team.hpp"

#include <mpi.h>
#include <offpath/offpath.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>

namespace offpath::mpi {

// What a lane consists of: the service's part, and a communicator of the same ranks for what goes natively behind the
// application's back, once they have agreed on that.
struct Assembly {
  MPI_Comm shadow = MPI_COMM_NULL;  // returns errors
  std::unique_ptr<ServiceTeam> service;
  int rank = 0;
  int size = 0;
  std::unique_ptr<Neighborhood> neighborhood;
};

class Lane {
 public:
  enum class Phase : uint8_t { offloading, cutting, settled, host, dead };
  // Where a new operation goes: to add(), or natively to the shadow communicator.
  enum class Route : uint8_t { lane, shadow, error };

  // `parts` without a shadow. May throw bad_alloc.
  Lane(CommCell comm, Assembly parts, uint32_t nodes, Preference preference);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Takes its communicators. Before its first operation.
  void begin(MPI_Comm shadow, MPI_Comm council);
  // Constant; any thread.
  int rank() const { return rank_; }
  int size() const { return size_; }
  uint32_t nodes() const { return nodes_; }
  MPI_Comm shadow() const { return shadow_; }
  // Which way its calls go; to be asked for each.
  Adapter& adapter() const { return *adapter_; }
  // nullptr: the communicator has no topology.
  const Neighborhood* neighborhood() const { return neighborhood_.get(); }
  // As of ServiceTeam, in whose place another one may be at any time.
  std::string compress() const { return service_->compress(); }
  void compress(const std::string& wish) { service_->compress(wish); }
  // The application's communicator, MPI_COMM_NULL once it was freed. Any thread.
  MPI_Comm comm() const { return comm_->load(std::memory_order_acquire); }
  const CommCell& comm_cell() const { return comm_; }
  // Calls the error handler of that communicator and returns `code`. Not Inside.
  int raise(int code) const;
  // From the communicator's attribute callback; any thread.
  void forget_comm() { comm_->store(MPI_COMM_NULL, std::memory_order_release); }
  // Of a dead lane; any thread.
  int failure_code() const;
  // What the program is told of `code`, that of a call on one of our communicators.
  int error_of(int code);
  // The library ends what is there natively, and tells all ranks.
  void revoke();
  // No new operations will come; any thread.
  void close() { closed_.store(true, std::memory_order_release); }

  // Asked for each new operation. What does not go to add() has its number now.
  Route route(const Call& call);
  // Takes a new operation: starts its messages, and hands its other share to the service or queues it.
  void add(PostedCall* operation);
  // As Adapter::decide(), in its turn: nothing for what adapts while any operation is deferred. By who posts; not under
  // the lock.
  std::optional<Answer> decide(const Ask& ask) const {
    const bool waits = defers() && adapter_->adapts(ask.collective, ask.bytes);
    return waits ? std::nullopt : adapter_->decide(ask);
  }
  // Operations wait for an agreement on their paths, and so must all new ones. Any thread.
  bool defers() const { return deferred_.load(std::memory_order_acquire) > 0; }
  void defer(PostedCall* operation);
  // Moves everything on as far as it goes without waiting.
  void advance();
  bool idle() const { return operations_.empty(); }
  // It has had operations.
  bool in_use() const { return next_sequence_ > 0; }
  bool holds_back() const;
  // It has lost a service, and has no other one yet. Any thread.
  bool broken() const { return broken_.load(std::memory_order_acquire); }
  bool closed() const { return closed_.load(std::memory_order_acquire); }
  // No rank needs it any more. Where its operations have ended it asks the others, who may be at them, and await its word.
  bool departed();
  // Whether or not anything is under way. check() notices a loss, or a service that leaves; respond() only takes in what other ranks
  // have said, and answers. `looks_for_turns`: also for what is said about services that leave, before this rank has said anything.
  void check();
  void respond(bool looks_for_turns = true);

 private:
  void start(PostedCall& operation);
  // What is deferred and can be decided by now.
  void take_deferred();
  bool take(PostedCall& operation);
  void issue_natively(PostedCall& operation, MPI_Comm comm);
  void try_post(PostedCall& operation);
  void step(PostedCall& operation);
  void step_posted(PostedCall& operation);
  void step_unfinished(PostedCall& operation);
  void finish_done(PostedCall& operation);
  void reissue(PostedCall& operation);
  Failure own_failure() const { return own_lost_ ? Failure::service_lost : Failure::peer_lost; }
  void begin_cut();
  // Terminal.
  void die(Failure why);
  // Of lost processes only one side knows yet, the library or the service: never for long.
  bool awaits_library() const { return phase_ == Phase::cutting && !turn_->cut.said(); }
  void hear_library(int code);
  bool is_told_of_lost() const { return failure_ == Failure::process_lost || failure_ == Failure::revoked; }
  // Its team is, or a process is lost that has not said yet that it has gone on: its team here may never hear of it.
  bool is_broken() const;
  // lane_turn.cpp: to the next team.
  void leave();
  void come_back();
  void say_where();
  void go_on();
  void look_back();
  // Those from that number on go to the next team.
  uint64_t turning_point() const;
  bool all_are_ready();
  void hear_ready();
  void stop_turning();
  bool waits_for_next(uint64_t sequence) const { return sequence >= turning_point(); }
  bool is_agreed() const { return phase_ == Phase::settled || phase_ == Phase::host; }
  Word own_word(uint64_t next) const;
  // Where no rank has lost its own service: services have lost each other.
  void report_parting(const char* meaning) const;
  // Whether later operations have to wait for this one, because all ranks post and issue them in the same order.
  bool holds_up(const PostedCall& operation) const;
  bool nothing_holds_up() const;
  void end(PostedCall& operation, int error);
  void fail_lost(PostedCall& operation, Failure failure);

  CommCell comm_;
  MPI_Comm shadow_ = MPI_COMM_NULL;
  std::unique_ptr<ServiceTeam> service_;
  int rank_;
  int size_;
  uint32_t nodes_;
  std::unique_ptr<Neighborhood> neighborhood_;
  std::unique_ptr<Adapter> adapter_;
  std::atomic<bool> closed_{false};
  Phase phase_ = Phase::offloading;
  std::atomic<Failure> failure_{Failure::no_agreement};  // why it is dead
  Cut::Clock::time_point process_lost_since_{};
  std::atomic<bool> broken_{false};
  std::atomic<size_t> deferred_{0};  // the last so many operations
  // All that is said on the way to the next team; the next turn may come.
  struct Turn {
    Turn(const Seat& seat, uint64_t number) : cut(seat, number), comeback(seat, number) {}
    void sit(MPI_Comm comm) {
      cut.sit(comm);
      comeback.sit(comm);
    }
    bool begun() const { return ready > 0 || comeback.begun(); }
    Cut cut;
    Comeback comeback;
    bool said_ready = false;
    int ready = 0;  // others that could say where they are
  };
  // The turn before, until all ranks say that they have gone on; its words stay until the next one.
  struct Past {
    std::unique_ptr<Turn> turn;
    std::unique_ptr<ServiceTeam> service;
    uint64_t next = 0;  // all before it has ended here
    int others = 0;     // ranks that have gone on
    bool over = false;
  };
  bool looks_often_ = false;  // on the way to the next team; nobody waits for one that was never used
  bool past_is_over() const { return past_ == nullptr || past_->over; }
  uint64_t turns_ = 0;
  std::unique_ptr<Turn> turn_;
  std::unique_ptr<Past> past_;
  Breaks breaks_;
  bool own_lost_ = false;
  std::deque<PostedCall*> operations_;  // unfinished ones, as posted; those with a sequence in its order
  uint64_t next_sequence_ = 0;
  Told told_;
  uint64_t service_sequence_ = 0;  // of the next operation, as the service's team counts
  uint32_t shares_ = 0;            // operations that have not ended at the service
  uint32_t rounds_ = 0;
  uint32_t refused_posts_ = 0;
  bool may_issue_ = true;  // during a round: nothing before this operation holds it up
  bool departing_ = false;
  MPI_Request departure_ = MPI_REQUEST_NULL;  // a barrier on the shadow
};

using Lanes = std::list<std::unique_ptr<Lane>>;

}  // namespace offpath::mpi
