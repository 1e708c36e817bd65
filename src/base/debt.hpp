// SPDX-License-Identifier: BSD-3-Clause
// Debt: for how long a fair scheduler prefers others to a thread that has just run: as long as it has run. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace offpath::base {

class Debt {
 public:
  static constexpr uint64_t kMarginNs = 5'000;     // what going to sleep and waking up take
  static constexpr uint64_t kLongestNs = 500'000;  // schedulers forget, too

  // With the clocks of the time and of the thread as they are now, before it sleeps: how long until it owes nothing.
  uint64_t left_ns(uint64_t now_ns, uint64_t cpu_ns) {
    const uint64_t ran_ns = cpu_ns - std::exchange(cpu_ns_, cpu_ns);
    const uint64_t passed_ns = now_ns - std::exchange(now_ns_, now_ns);
    const uint64_t paid_ns = passed_ns - std::min(passed_ns, ran_ns);
    owed_ns_ = std::min(owed_ns_ - std::min(owed_ns_, paid_ns) + ran_ns, kLongestNs);
    return owed_ns_ + owed_ns_ / 4 + kMarginNs;
  }

 private:
  uint64_t now_ns_ = 0, cpu_ns_ = 0;  // when it was last asked
  uint64_t owed_ns_ = 0;
};

}  // namespace offpath::base
