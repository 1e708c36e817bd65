// SPDX-License-Identifier: BSD-3-Clause
// Balance: which worker takes how many tasks from which (docs/design/0029-balancing.md). Each decides with what it knows
// itself and what was said to it last; nothing is agreed on. Pure: times are given.
#pragma once

#include "tasks/moving.hpp"

#include <optional>

namespace offpath::tasks {

// The time from giving a task to a worker to having its result, and of functions, as measured.
class Mean {
 public:
  void add(uint64_t ns) { ns_ = ns_ == 0 ? ns : ns_ - ns_ / 4 + ns / 4; }
  uint64_t ns(uint64_t fallback) const { return ns_ == 0 ? fallback : ns_; }
  // What was once measured counts for less, so that it is measured again.
  void fade() { ns_ -= ns_ / 8; }
  bool known() const { return ns_ != 0; }

 private:
  uint64_t ns_ = 0;
};

// What a task will take here: as its function did lately, or, where its submitter says how long, as `ratio` makes of that. However wild
// these are it is never more than kMostCostNs, of which many can be added.
inline constexpr uint64_t kMostCostNs = uint64_t{4} * 3600 * 1000000000;
uint64_t expected_cost_ns(const Mean& lately, uint64_t said_ns, double ratio);

// Who gives and takes with whom: of `count` workers in an order that all know, those at a distance of 1, 2, 4 ... in both
// directions. So load spreads over all in a few steps, and nobody talks to all.
std::vector<uint32_t> neighbours(uint32_t own, uint32_t count);

// How long it takes until all that is there has ended.
uint64_t drain_ns(const Load& load);

// Of a task, on average: here, and where it is asked whether it may go.
uint64_t cost_ns(const Load& load);
uint64_t cost_there_ns(const Load& load);

// What was said some time ago, if all executors have run since. So nobody waits for tasks that are not there any more.
Load aged(const Load& load, uint64_t elapsed_ns);

// Of one that has more than it runs: would the last of it end sooner at another worker that has nothing to do?
bool is_worth_asking(const Load& load);

// Of one that could take tasks of that asker: how many more it has room for, so that its executors need not wait for the
// next one while that is on its way. `guests`: that have not begun. `promised`: that were granted and have not come.
uint32_t room_for_guests(const Load& own, uint32_t guests, uint32_t promised, const Load& asker);

// How many of the asker's tasks one with such room should take: as many as make both end at the same time. `wait_ns`: what the
// first of them would wait for an executor.
uint32_t share(const Load& asker, const Load& own, uint64_t wait_ns, uint32_t room);

// How long room that was granted is kept for who asked: it may have nothing to give any more.
uint64_t promise_ns(const Load& asker);

// Whom to take from, of those that have asked: who ends last.
std::optional<size_t> choose(std::span<const Load> askers);

// Of one that has been granted places: does the task that would be run last end sooner there, when so many were given there before
// it? `trip_ns`: what it takes beside running and waiting, both ways; `cost_ns`: what it runs there.
uint64_t end_there_ns(const Grant& grant, uint32_t before, uint64_t trip_ns, uint64_t cost_ns);
bool is_sooner_there(const Load& own, uint64_t there_ns);

// How long a task that comes now waits for an executor.
uint64_t wait_for_executor_ns(const Load& own, uint64_t guests_ns);

// Of a task that is away: begin it at home, too?
struct Away {
  uint64_t since_ns;     // it was given away
  uint64_t expected_ns;  // it should have taken
  uint64_t cost_ns;      // at home; 0: not known
  uint64_t deadline_ns;  // 0: none
};
bool is_overdue(const Away& away, uint64_t now_ns, bool home_is_idle);
// The time to look again at which that may have changed.
uint64_t next_look_ns(const Away& away);

}  // namespace offpath::tasks
