// SPDX-License-Identifier: BSD-3-Clause
// A process that computes on a core, for as long as it is told to, and counts what it gets done.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace wire {

class Worker {
 public:
  explicit Worker(int core);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();
  void run();
  void pause();
  // Pieces of work done so far, of a few microseconds each.
  std::uint64_t done() const { return shared_->done.load(std::memory_order_relaxed); }

 private:
  struct Shared {
    std::atomic<std::uint32_t> runs{0};
    std::atomic<std::uint64_t> done{0};
  };
  [[noreturn]] static void work(Shared& shared, pid_t parent);
  Shared* shared_;
  pid_t process_;
};

}  // namespace wire
