// SPDX-License-Identifier: BSD-3-Clause
// Nudge: has the scheduler look again at a thread (a worker, an agent) that shares its core.
//
// A fair scheduler makes a thread that has just run wait, also when something wakes it, until the others have had as much.
// Linux (since 6.6, EEVDF) looks for the end of that at the next tick only, 4 ms away at 250 Hz, or when it wakes anybody
// else on that core. So one that works for 15 us, sleeps, and is woken 2 us later, stands still for milliseconds
// beside a program that computes (traced in docs/performance/wire.md). A second thread that wakes up when its debt is
// paid makes that microseconds.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "base/debt.hpp"

#include <atomic>
#include <functional>
#include <thread>

namespace offpath::base {

class Nudge {
 public:
  Nudge() = default;
  ~Nudge();
  Nudge(const Nudge&) = delete;
  Nudge& operator=(const Nudge&) = delete;

  // The second thread calls `settle` first, which has it run where the nudged one does.
  Status start(std::function<void()> settle);

  // The nudged thread: each time before it sleeps.
  void note_sleep();
  // Then, if it is to be nudged when its debt is paid; unless it wakes up before.
  void set();
  void cancel();
  // How often so far; any thread.
  uint64_t times() const { return times_.load(std::memory_order_relaxed); }

 private:
  void set_timer(uint64_t ns);
  Fd timer_, end_;
  Debt debt_;
  uint64_t left_ns_ = 0;
  bool is_set_ = false;
  std::atomic<uint64_t> times_{0};
  std::thread thread_;
};

}  // namespace offpath::base
