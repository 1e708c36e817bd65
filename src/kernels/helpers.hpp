// SPDX-License-Identifier: BSD-3-Clause
// Helpers: threads that run blocks of kernels for others, and Run, a kernel that is being worked off by its owner and
// by whoever of them comes. Helpers see nothing but kernels and arrays. They sleep while there is nothing to run.
#pragma once

#include "kernels/kernel.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace offpath::kernels {

class Run {
 public:
  // The kernel has begun. It and what the arrays point to stay until all blocks are done, or until stop().
  Run(Kernel& kernel, std::vector<uint8_t*> arrays);

  // Any thread. Runs a block that nobody has taken; false: all are taken.
  bool run_block();
  // Blocks done so far; what they have written is seen by the caller.
  uint64_t done() const { return done_.load(std::memory_order_acquire); }
  Arrays arrays() const { return arrays_; }
  // No further block is begun. Returns when those under way are done: in the time of one block.
  void stop();

 private:
  Kernel& kernel_;
  const std::vector<uint8_t*> arrays_;
  const uint64_t blocks_;
  alignas(64) std::atomic<uint64_t> next_{0};
  alignas(64) std::atomic<uint64_t> done_{0};
};

class Helpers {
 public:
  // `prepare` is what each thread does first. There are no threads before the first offer().
  Helpers(uint32_t count, std::function<void()> prepare);
  // Runs must be over or stopped.
  ~Helpers();
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

  uint32_t count() const { return count_; }
  // Any thread; never waits for a block. Wakes the helpers: they run blocks until all are taken.
  void offer(std::shared_ptr<Run> run);

 private:
  void start_threads();
  void loop();

  const uint32_t count_;
  const std::function<void()> prepare_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Run>> runs_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

// A run for the caller to work off, offered to the helpers (null: there are none) if it is long enough. With the
// caller's last reference it is stopped.
std::shared_ptr<Run> start_run(Kernel& kernel, std::vector<uint8_t*> arrays, Helpers* helpers);

}  // namespace offpath::kernels
