// SPDX-License-Identifier: BSD-3-Clause
// Clocks as one number. Any thread; no errors: a clock of this system is always there.
#pragma once

#include <ctime>

#include <cstdint>

namespace offpath::base {

// In ns. CLOCK_MONOTONIC is the one whose times processes of a node may compare.
inline uint64_t clock_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace offpath::base
