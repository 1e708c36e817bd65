// SPDX-License-Identifier: BSD-3-Clause
// The Q matrix of a non-Cartesian magnetic resonance image: at size voxels a sum over samples in k-space; almost only
// sines and cosines.
#include "accel.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

enum { SAMPLES = 512 };

struct accel_result accel_mriq(long size, bool on_device) {
  double *voxel = accel_doubles(3 * size), *sample = accel_doubles(4 * SAMPLES), *q = accel_doubles(2 * size);
  for (long i = 0; i < 3 * size; i++) {
    voxel[i] = accel_random(i) - 0.5;
  }
  for (long i = 0; i < 4 * SAMPLES; i++) {  // three frequencies and a magnitude each
    sample[i] = accel_random(-i) - (i % 4 == 3 ? 0 : 0.5);
  }
  const double start = omp_get_wtime();
#pragma omp target parallel for if (target                                                         \
                                    : on_device) map(to                                            \
                                                     : voxel [0:3 * size], sample [0:4 * SAMPLES]) \
    map(from                                                                                       \
        : q [0:2 * size])
  for (long v = 0; v < size; v++) {
    double real = 0, imaginary = 0;
    for (long s = 0; s < SAMPLES; s++) {
      const double *k = sample + 4 * s, *x = voxel + 3 * v;
      const double phase = 2 * M_PI * 8 * (k[0] * x[0] + k[1] * x[1] + k[2] * x[2]);
      real += k[3] * cos(phase);
      imaginary += k[3] * sin(phase);
    }
    q[2 * v] = real;
    q[2 * v + 1] = imaginary;
  }
  const double seconds = omp_get_wtime() - start;
  free(voxel);
  free(sample);
  return (struct accel_result){q, 2 * size, seconds};
}
