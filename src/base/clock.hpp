// SPDX-License-Identifier: BSD-3-Clause
// Clocks as one number. Any thread; no errors: a clock of this system is always there.
#pragma once

#include <ctime>

#include <sys/types.h>

#include <cstdint>

namespace offpath::base {

// In ns. CLOCK_MONOTONIC is the one whose times processes of a node may compare.
inline uint64_t clock_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

// Processor time of a process, all its threads together; 0: it is not there.
inline uint64_t process_clock_ns(pid_t process) {
  clockid_t clock;
  return clock_getcpuclockid(process, &clock) == 0 ? clock_ns(clock) : 0;
}

}  // namespace offpath::base
