// SPDX-License-Identifier: BSD-3-Clause
// The function that executors run: forces of some atoms by a half list, and the seconds it took as the third sum.
#include "forces.hpp"

#include <algorithm>
#include <chrono>

#include <offpath/task.h>

#include "../force.hpp"

static int minimd_forces(const offpath_task_t* task) {
  using namespace minimd;
  using Clock = std::chrono::steady_clock;
  if (task->argument_bytes != sizeof(ForcesArgument) || task->ranges_count != kForcesRanges) return 1;
  const auto start = Clock::now();
  const auto& a = *static_cast<const ForcesArgument*>(task->argument);
  const auto* const ranges = task->ranges;
  const ListView list{static_cast<const int*>(ranges[kFirst].address),
                      static_cast<const int*>(ranges[kNeighbours].address)};
  const auto* const x = static_cast<const double*>(ranges[kPositions].address);
  auto* const f = static_cast<double*>(ranges[kForces].address);
  Sums sums;
  for (int again = 0; again < a.repeats; ++again) {
    std::fill(f + 3 * std::size_t(a.begin), f + 3 * std::size_t(a.all), 0.0);
    sums = add_forces(x, f, list, a.begin, a.end, a.cutoff, a.with_sums != 0);
  }
  auto* const out = static_cast<double*>(ranges[kSums].address);
  out[0] = sums.energy, out[1] = sums.virial;
  out[2] = std::chrono::duration<double>(Clock::now() - start).count();
  return 0;
}
OFFPATH_TASK_FUNCTION(minimd_forces,
                      "minimd_forces(in double x[], in int first[], in int neighbours[], out double f[], out double "
                      "sums[3]) 1");
