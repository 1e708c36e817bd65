// SPDX-License-Identifier: BSD-3-Clause
// Starvation: a thread that is ready to run gets no processor. It gives no sign of life, yet it is neither stopped nor
// lost. /proc knows: state R at two looks, not asleep in between, and its processor time stands. schedstat does not
// tell, as a wait counts there only when it has ended. A thread that cannot be read counts as not starved: another pid
// namespace, hidepid.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace offpath::base {

// What the kernel says of a thread.
struct ThreadTimes {
  char state = 0;       // R: runs, or is ready to; S, D: sleeps; T, t: is stopped; Z, X: is dead
  uint64_t ran_ns = 0;  // to within a tick of 10 ms
  uint64_t slept = 0;   // so often, or was stopped
};

class Starvation {
 public:
  // Of no thread.
  Starvation() = default;
  // `proc`: the folder /proc, or a test's.
  Starvation(pid_t process, pid_t thread, const std::string& proc = "/proc");

  // How long the thread was starved since the last call: if it was ready to run all the time and did not for most of it; else 0, as at the
  // first call. Reads two files of /proc: to be called only when there is doubt.
  uint64_t since_last_ns(uint64_t now_ns);

 private:
  std::optional<ThreadTimes> look() const;

  std::string folder_;  // of the thread; empty: there is none
  std::optional<ThreadTimes> seen_;
  uint64_t seen_ns_ = 0;
};

// For how long the calling thread has waited for processors so far. 0: the kernel does not say.
uint64_t own_waits_ns();

// What a thread says of that to others.
class OwnWaits {
 public:
  explicit OwnWaits(std::function<uint64_t()> so_far = own_waits_ns) : so_far_(std::move(so_far)) {}
  // Since the last call; at first since the thread began.
  uint64_t since_told_ns() {
    const uint64_t so_far_ns = so_far_();
    return so_far_ns - std::exchange(told_ns_, so_far_ns);
  }

 private:
  std::function<uint64_t()> so_far_;
  uint64_t told_ns_ = 0;
};

}  // namespace offpath::base
