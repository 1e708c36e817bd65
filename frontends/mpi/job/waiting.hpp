// SPDX-License-Identifier: BSD-3-Clause
// How a thread waits for offloaded operations: rounds of progress with pauses in between. A pause is a short
// spin where the service has cores of its own, then a sleep that an ending operation interrupts. The sleep is bounded,
// because native communication of this rank (a peer's rendezvous) moves only in the rounds. While nothing waited for is
// at the service there is no sleep: rounds follow each other as they do in a native wait.
#pragma once

#include <cstdint>

namespace offpath::mpi {

enum class Beside { nothing, native_requests };

class Waiter {
 public:
  explicit Waiter(Beside beside = Beside::native_requests);
  // Between a round of progress that found nothing and the next.
  void pause();
  // The same while nothing waited for is at the service.
  void poll();

 private:
  uint64_t max_sleep_ns_;
  uint64_t sleep_ns_;
  uint32_t spins_left_;
  uint32_t polls_left_;
  uint32_t seen_events_;
};

// Adds its own lifetime to the time spent waiting.
class WaitTimer {
 public:
  WaitTimer();
  ~WaitTimer();
  WaitTimer(const WaitTimer&) = delete;
  WaitTimer& operator=(const WaitTimer&) = delete;

 private:
  uint64_t begin_ns_;
};

}  // namespace offpath::mpi
