// SPDX-License-Identifier: BSD-3-Clause
// Lattice Boltzmann, two dimensions, nine velocities, single relaxation time (Bhatnagar, Gross, Krook; Qian et al.
// 1992), in a periodic square of size^2 cells: collide and push to the neighbours in one pass. Nine streams in, nine
// out.
#include "accel.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

enum { VELOCITIES = 9, STEPS = 20 };

#pragma omp declare target
static const int kStepX[VELOCITIES] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
static const int kStepY[VELOCITIES] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
static const double kWeight[VELOCITIES] = {4. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 36, 1. / 36, 1. / 36, 1. / 36};

static double equilibrium(int k, double density, double u, double v) {
  const double along = 3 * (kStepX[k] * u + kStepY[k] * v);
  return kWeight[k] * density * (1 + along + 0.5 * along * along - 1.5 * (u * u + v * v));
}

static void collide_and_push(long size, long x, long y, const double* from, double* to) {
  const long count = size * size, cell = y * size + x;
  double density = 0, u = 0, v = 0;
  for (int k = 0; k < VELOCITIES; k++) {
    const double f = from[k * count + cell];
    density += f;
    u += kStepX[k] * f;
    v += kStepY[k] * f;
  }
  u /= density;
  v /= density;
  for (int k = 0; k < VELOCITIES; k++) {
    const double f = from[k * count + cell];
    const long there = (y + kStepY[k] + size) % size * size + (x + kStepX[k] + size) % size;
    to[k * count + there] = f + 1.2 * (equilibrium(k, density, u, v) - f);
  }
}
#pragma omp end declare target

struct accel_result accel_lbm(long size, bool on_device) {
  const long count = VELOCITIES * size * size;
  double *now = accel_doubles(count), *next = accel_doubles(count);
  for (long y = 0; y < size; y++) {  // a shear wave with noise
    for (long x = 0; x < size; x++) {
      const double u = 0.05 * sin(2 * M_PI * (double)y / (double)size);
      for (int k = 0; k < VELOCITIES; k++) {
        now[k * size * size + y * size + x] = equilibrium(k, 1 + 0.01 * accel_random(y * size + x), u, 0);
      }
    }
  }
  const double start = omp_get_wtime();
#pragma omp target data if (on_device) map(tofrom : now [0:count]) map(alloc : next [0:count])
  for (int step = 0; step < STEPS; step++) {
    const double* from = step % 2 == 0 ? now : next;
    double* to = step % 2 == 0 ? next : now;
#pragma omp target parallel for if (target : on_device) map(from [0:count], to [0:count])
    for (long y = 0; y < size; y++) {
      for (long x = 0; x < size; x++) {
        collide_and_push(size, x, y, from, to);
      }
    }
  }
  const double seconds = omp_get_wtime() - start;
  free(next);
  return (struct accel_result){now, count, seconds};
}
