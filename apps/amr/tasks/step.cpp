// SPDX-License-Identifier: BSD-3-Clause
// The function that executors run: one time step of one patch.
#include "step.hpp"

#include <cstdint>

#include <offpath/task.h>

#include "../advance.hpp"

static int amr_step(const offpath_task_t* task) {
  using namespace amr;
  if (task->argument_bytes != sizeof(StepArgument) || task->ranges_count != kStepRanges) return 1;
  const auto& a = *static_cast<const StepArgument*>(task->argument);
  const auto* const ranges = task->ranges;
  const Shape shape{a.n};
  if (a.n < 1 || a.n > (1 << 20) || ranges[kState].bytes != shape.state() * sizeof(double) ||
      ranges[kNext].bytes != ranges[kState].bytes || ranges[kResult].bytes != shape.result() * sizeof(double))
    return 2;
  for (int again = 0; again < a.work; ++again)
    advance(shape, static_cast<const double*>(ranges[kState].address), static_cast<double*>(ranges[kNext].address),
            static_cast<double*>(ranges[kResult].address), a.ratio);
  return 0;
}
OFFPATH_TASK_FUNCTION(amr_step, "amr_step(in double state[], out double next[], out double result[]) 1");
