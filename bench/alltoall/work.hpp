// A fixed amount of computation. Never a fixed time: a loop until a deadline would hide the cycles that others stole.
#pragma once

#include <cstdint>

namespace bench {

// Works on a few KiB, so that it measures cycles and not memory. Returns a value the compiler cannot know.
double work(std::int64_t iterations);

// Iterations in ns nanoseconds on this core, now: the best of a few tries, because others can only make it slower.
std::int64_t calibrate_work(std::int64_t ns);

}  // namespace bench
