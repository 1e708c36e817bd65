// SPDX-License-Identifier: BSD-3-Clause
// Where a rank's time goes: seconds of each phase of a program.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <numeric>

namespace report {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class Phase, std::size_t kPhases>
class PhaseTimes {
 public:
  // Runs call() and charges its time to the phase.
  template <class Call>
  auto charge(Phase phase, Call call) {
    struct Clock {
      double& seconds;
      double start = seconds_now();
      ~Clock() { seconds += seconds_now() - start; }
    } clock{seconds_[std::size_t(phase)]};
    return call();
  }
  double seconds(Phase phase) const { return seconds_[std::size_t(phase)]; }
  double all() const { return std::accumulate(seconds_.begin(), seconds_.end(), 0.0); }
  void clear() { seconds_ = {}; }

 private:
  std::array<double, kPhases> seconds_{};
};

}  // namespace report
