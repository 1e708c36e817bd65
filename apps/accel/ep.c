// SPDX-License-Identifier: BSD-3-Clause
// Embarrassingly parallel: pairs of Gaussian random numbers by the polar method (Marsaglia, 1964), counted in annuli; a
// region with reductions, a called function and no array that is mapped in.
#include "accel.h"

#include <math.h>
#include <omp.h>

enum { ANNULI = 10 };

#pragma omp declare target
static unsigned long advanced(unsigned long state) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^ state << 17;
}
static double uniform(unsigned long state) {
  return (double)(state >> 11) * 0x1p-52 - 1;  // in [-1, 1)
}
#pragma omp end declare target

struct accel_result accel_ep(long size, bool on_device) {
  double* found = accel_doubles(ANNULI + 2);
  double sum_x = 0, sum_y = 0, annulus[ANNULI] = {0};
  const double start = omp_get_wtime();
#pragma omp target parallel for if (target : on_device) map(tofrom : sum_x, sum_y, annulus) \
    reduction(+ : sum_x, sum_y, annulus)
  for (long block = 0; block < size; block++) {
    unsigned long state = advanced(0x9e3779b97f4a7c15u * (unsigned long)(block + 1));
    for (int pair = 0; pair < 1000; pair++) {
      state = advanced(state);
      const double x = uniform(state);
      state = advanced(state);
      const double y = uniform(state), square = x * x + y * y;
      if (square < 1 && square > 0) {
        const double factor = sqrt(-2 * log(square) / square);
        const double larger = fmax(fabs(factor * x), fabs(factor * y));
        sum_x += factor * x;
        sum_y += factor * y;
        annulus[larger < ANNULI - 1 ? (int)larger : ANNULI - 1] += 1;
      }
    }
  }
  const double seconds = omp_get_wtime() - start;
  for (int i = 0; i < ANNULI; i++) {
    found[i] = annulus[i];
  }
  found[ANNULI] = sum_x;
  found[ANNULI + 1] = sum_y;
  return (struct accel_result){found, ANNULI + 2, seconds};
}
