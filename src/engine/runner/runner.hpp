// SPDX-License-Identifier: BSD-3-Clause
// Runner: runs graphs: which step may start, and what is over. It sees operations and no wires: what steps do, and what else
// becomes of an operation, is done by rooms. Owned by the engine; on the worker's thread; blocks nobody. A failure is the
// operation's status. Internal to engine/.
//
// Nothing runs or ends an operation from inside anything else: steps that may start and operations that are over are
// queued, and settle() works the queues off at the end of each call from outside. So chains of steps need no stack, and a
// reference to an operation stays good until settle().
#pragma once

#include "engine/core/core.hpp"
#include "memory/completions.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

namespace offpath::engine {

// What the runner has others do.
class Rooms {
 public:
  virtual ~Rooms() = default;
  // It was posted, and its first steps may start.
  virtual void begin(Operation& operation) = 0;
  virtual void begin_step(Operation& operation, uint32_t step) = 0;
  // One that a room has added.
  virtual void end_step(Operation& operation, uint32_t step, const base::Status& status, uint64_t bytes) = 0;
  // What a step has made is there: exports that have waited for it, from that one on.
  virtual void offer(Operation& operation, uint32_t first) = 0;
  // All its steps are done, and it ends only when others' are.
  virtual void arrive(Operation& operation) = 0;
  // It is over, but may still be found: nothing of it may be touched any more.
  virtual void forget(Operation& operation) = 0;
  virtual void end(std::unique_ptr<Operation> operation) = 0;
  // Does one thing that was put off.
  virtual void go_on() = 0;
};

class Runner {
 public:
  // Both outlive it. `wake`: see Config.
  Runner(Core& core, Rooms& rooms, std::function<void()> wake)
      : core_(core), rooms_(rooms), completions_(std::move(wake)) {}

  void start(Operation& operation);
  // Of a room's own, which may start at once.
  void add_step(Operation& operation, graph::Step step);
  // `bytes`: what it has moved.
  void finish_step(Operation& operation, uint32_t step, const base::Status& status, uint64_t bytes);
  // One that it has waited for is done.
  void release_step(Operation& operation, uint32_t step);
  void end_if_done(Operation& operation);
  void end(Operation& operation, const base::Status& status);
  // Something is to be done when no step may start.
  void put_off() { ++put_off_; }
  void settle();

  // ---- accesses.cpp: what ports do later. An operation with one under way does not end: nothing may touch its client's memory then.
  memory::Ticket next_ticket() { return {&completions_, core_.next_id++}; }
  // Goes on with `then(operation, status)`, now or when the port has done it. Null: the operation is over, there is
  // only to be given back what the access has used.
  template <typename Function>
  void when_done(Operation& operation, const memory::Outcome& outcome, memory::Ticket ticket, Function&& then) {
    if (!outcome.is_later()) return then(&operation, outcome.status());
    later(operation, ticket.number, std::forward<Function>(then));
  }
  // The same for what is no operation's: `then(status)`.
  template <typename Function>
  void when_done(const memory::Outcome& outcome, memory::Ticket ticket, Function&& then) {
    if (!outcome.is_later()) return then(outcome.status());
    accesses_.emplace(ticket.number, Access{0, [then = std::forward<Function>(then)](
                                                   Operation*, const base::Status& status) { then(status); }});
  }
  void later(Operation& operation, uint64_t ticket, Then then);
  void end_access(uint64_t ticket, const base::Status& status);
  // Goes on with those that have ended. False: there was none.
  bool reap();

 private:
  // What a port will do later, and what then follows.
  struct Access {
    uint64_t operation = 0;  // 0: of none
    Then then;
  };

  void release_first_steps(Operation& operation);
  // A failure is the next one's failure too: it would work on garbage.
  void release_next_in_order(const Operation& operation);
  void retire(Operation& operation);

  Core& core_;
  Rooms& rooms_;
  std::deque<std::pair<Operation*, uint32_t>> ready_;  // steps that may start
  std::deque<Operation*> ended_;
  size_t put_off_ = 0;
  memory::Completions completions_;
  std::unordered_map<uint64_t, Access> accesses_;  // by ticket
};

}  // namespace offpath::engine
