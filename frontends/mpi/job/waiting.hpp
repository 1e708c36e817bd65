// SPDX-License-Identifier: BSD-3-Clause
// How a thread waits: rounds of progress with pauses in between. Where the service has cores of its own a pause is a
// short spin at first. Then it is a sleep that an ending operation interrupts. The sleep is bounded, because native
// communication of this rank (a peer's rendezvous) moves only in the rounds. On cores that ranks and service share
// nobody spins or yields: the service that is waited for, and strangers, need them (docs/design/0032-waiting.md).
#pragma once

#include <offpath/offpath.h>

#include <cstdint>

namespace offpath::mpi {

enum class Beside { nothing, native_requests };

class Waiter {
 public:
  explicit Waiter(Beside beside = Beside::native_requests);
  // Between a round of progress that found nothing and the next.
  void pause();
  // The same while nothing waited for is at the service: only rounds bring the end nearer, so sleeps are short, and where
  // nobody else needs the core there are none.
  void poll();

 private:
  void sleep(uint64_t most_ns);
  void note_events();

  uint64_t max_sleep_ns_;
  uint64_t sleep_ns_;
  uint32_t spins_left_;
  // At the session where something is under way, as windows and files stay where they were made when a service is replaced.
  offpath_session_t* session_;
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
