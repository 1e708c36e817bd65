// SPDX-License-Identifier: BSD-3-Clause
// Wall time, processor time, where a program's time goes, and what repeated times come to.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <sched.h>
#include <time.h>

namespace kit {

inline std::int64_t clock_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}
inline std::int64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }
inline std::int64_t process_cpu_ns() { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }  // of all its threads
inline std::int64_t thread_cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }    // of the caller
inline double seconds_now() { return 1e-9 * double(now_ns()); }

inline void sleep_ns(std::int64_t ns) {
  const timespec nap{time_t(ns / 1'000'000'000), long(ns % 1'000'000'000)};
  nanosleep(&nap, nullptr);
}

// Keeps the calling thread, and what it starts, on a core. False: the core is not there.
inline bool pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return sched_setaffinity(0, sizeof(set), &set) == 0;
}

template <class Number>
struct Spread {
  Number median{}, min{}, max{};
};
// All 0: there are none.
template <class Number>
Spread<Number> spread(std::vector<Number> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return {values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2, values.front(), values.back()};
}

// Seconds of each phase of a program.
template <class Phase, std::size_t kPhases>
class PhaseTimes {
 public:
  // Runs call() and charges its time to the phase.
  template <class Call>
  auto charge(Phase phase, Call call) {
    struct Clock {
      double &seconds, &longest;
      double start = seconds_now();
      ~Clock() {
        const double took = seconds_now() - start;
        seconds += took;
        longest = std::max(longest, took);
      }
    } clock{seconds_[std::size_t(phase)], longest_[std::size_t(phase)]};
    return call();
  }
  // Time that passed elsewhere.
  void add(Phase phase, double seconds) { seconds_[std::size_t(phase)] += seconds; }
  double seconds(Phase phase) const { return seconds_[std::size_t(phase)]; }
  double all() const { return std::accumulate(seconds_.begin(), seconds_.end(), 0.0); }
  double longest(Phase phase) const { return longest_[std::size_t(phase)]; }  // that was charged at once
  double longest() const { return *std::max_element(longest_.begin(), longest_.end()); }
  void clear() { seconds_ = longest_ = {}; }

 private:
  std::array<double, kPhases> seconds_{}, longest_{};
};

}  // namespace kit
