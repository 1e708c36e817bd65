// SPDX-License-Identifier: BSD-3-Clause
// Where a rank's time went, in the rows of the table that is printed.
#pragma once

#include <array>
#include <chrono>

namespace bspmm {

// get, update: the calls and, in the blocking variant, their completion. wait: completion in the nonblocking variant.
// counter: until the next unit of work was known.
enum class Row { counter, get, compute, update, wait };
constexpr int kRows = 5;
constexpr const char* kRowNames[kRows] = {"counter", "get", "compute", "update", "wait"};

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Profile {
 public:
  // Runs call() and charges its time to row.
  template <class Call>
  auto charge(Row row, Call call) {
    struct Clock {
      double& seconds;
      double start = seconds_now();
      ~Clock() { seconds += seconds_now() - start; }
    } clock{seconds_[int(row)]};
    return call();
  }
  double seconds(Row row) const { return seconds_[int(row)]; }

 private:
  std::array<double, kRows> seconds_{};
};

}  // namespace bspmm
