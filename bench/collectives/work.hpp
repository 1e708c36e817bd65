// SPDX-License-Identifier: BSD-3-Clause
// A fixed amount of computation. Never a fixed time: a loop until a deadline would hide the cycles that others stole.
#pragma once

#include <cstdint>

namespace bench {

// Works in registers, so that it measures cycles and not memory.
double work(std::int64_t iterations);

// Iterations in ns nanoseconds on this core, now: the median of a few tries.
std::int64_t calibrate_work(std::int64_t ns);

}  // namespace bench
