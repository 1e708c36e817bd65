// SPDX-License-Identifier: BSD-3-Clause
// Jacobi iterations of a 7-point stencil on size^3 points: streaming memory. One mapping, one region per iteration.
#include "accel.h"

#include <omp.h>
#include <stdlib.h>

enum { ITERATIONS = 20 };

struct accel_result accel_stencil(long size, bool on_device) {
  const long count = size * size * size, plane = size * size;
  double *now = accel_doubles(count), *next = accel_doubles(count);
  for (long i = 0; i < count; i++) {
    now[i] = next[i] = accel_random(i);
  }
  const double start = omp_get_wtime();
#pragma omp target data if (on_device) map(tofrom : now [0:count], next [0:count])
  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
    const double* from = iteration % 2 == 0 ? now : next;
    double* to = iteration % 2 == 0 ? next : now;
#pragma omp target parallel for if (target : on_device) map(from [0:count], to [0:count])
    for (long z = 1; z < size - 1; z++) {
      for (long y = 1; y < size - 1; y++) {
        for (long x = 1; x < size - 1; x++) {
          const long i = z * plane + y * size + x;
          to[i] = 0.4 * from[i] + 0.1 * (from[i - 1] + from[i + 1] + from[i - size] + from[i + size] + from[i - plane] +
                                         from[i + plane]);
        }
      }
    }
  }
  const double seconds = omp_get_wtime() - start;
  free(next);
  return (struct accel_result){now, count, seconds};
}
