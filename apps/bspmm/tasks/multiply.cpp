// SPDX-License-Identifier: BSD-3-Clause
// The function that executors run: one product of tiles.
#include "multiply.hpp"

#include <cstddef>

#include <offpath/task.h>

#include "../product.hpp"

static int bspmm_multiply(const offpath_task_t* task) {
  using namespace bspmm;
  if (task->argument_bytes != sizeof(MultiplyArgument) || task->ranges_count != kMultiplyRanges) return 1;
  const auto& argument = *static_cast<const MultiplyArgument*>(task->argument);
  const auto* const ranges = task->ranges;
  const int n = argument.tile;
  if (n < 1 || n > 2048) return 2;
  for (int range = 0; range < kMultiplyRanges; ++range)
    if (ranges[range].bytes != std::size_t(n) * std::size_t(n) * sizeof(double)) return 2;
  multiply_add(n, argument.first != 0, static_cast<const double*>(ranges[kA].address),
               static_cast<const double*>(ranges[kB].address), static_cast<double*>(ranges[kC].address));
  return 0;
}
OFFPATH_TASK_FUNCTION(bspmm_multiply, "bspmm_multiply(in double a[], in double b[], inout double c[]) 1");
