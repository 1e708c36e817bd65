// SPDX-License-Identifier: BSD-3-Clause
// Conjugate gradients (Hestenes, Stiefel 1952) for the 5-point Laplacian of a size^2 grid: short regions, two scalars
// that come back to the host in each iteration; the vectors stay on the device between `enter data` and `exit data`.
#include "accel.h"

#include <omp.h>
#include <stdlib.h>

enum { ITERATIONS = 50 };

// q = A p, and returns p . q.
static double apply(long size, const double* p, double* q, bool on_device) {
  const long count = size * size;
  double product = 0;
#pragma omp target parallel for if (target : on_device) map(p[0 : count], q[0 : count]) map(tofrom : product) \
    reduction(+ : product)
  for (long y = 0; y < size; y++) {
    for (long x = 0; x < size; x++) {
      const long i = y * size + x;
      double sum = 4.01 * p[i];
      sum -= x > 0 ? p[i - 1] : 0;
      sum -= x < size - 1 ? p[i + 1] : 0;
      sum -= y > 0 ? p[i - size] : 0;
      sum -= y < size - 1 ? p[i + size] : 0;
      q[i] = sum;
      product += p[i] * sum;
    }
  }
  return product;
}

// x += alpha p and r -= alpha q, and returns r . r.
static double advance(long count, double alpha, const double* p, const double* q, double* x, double* r,
                      bool on_device) {
  double square = 0;
#pragma omp target parallel for if (target : on_device) map(p[0 : count], q[0 : count], x[0 : count], r[0 : count]) \
    map(tofrom : square) reduction(+ : square)
  for (long i = 0; i < count; i++) {
    x[i] += alpha * p[i];
    r[i] -= alpha * q[i];
    square += r[i] * r[i];
  }
  return square;
}

// p = r + beta p
static void turn(long count, double beta, const double* r, double* p, bool on_device) {
#pragma omp target parallel for if (target : on_device) map(r [0:count], p [0:count])
  for (long i = 0; i < count; i++) {
    p[i] = r[i] + beta * p[i];
  }
}

struct accel_result accel_cg(long size, bool on_device) {
  const long count = size * size;
  double *x = accel_doubles(count), *r = accel_doubles(count), *p = accel_doubles(count), *q = accel_doubles(count);
  double square = 0;
  for (long i = 0; i < count; i++) {
    x[i] = 0;
    r[i] = p[i] = accel_random(i);
    square += r[i] * r[i];
  }
  const double start = omp_get_wtime();
#pragma omp target enter data if (on_device) map(to : x [0:count], r [0:count], p [0:count]) map(alloc : q [0:count])
  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
    const double alpha = square / apply(size, p, q, on_device);
    const double next = advance(count, alpha, p, q, x, r, on_device);
    turn(count, next / square, r, p, on_device);
    square = next;
  }
#pragma omp target exit data if (on_device) map(from : x [0:count]) map(delete : r [0:count], p [0:count], q [0:count])
  const double seconds = omp_get_wtime() - start;
  free(r);
  free(p);
  free(q);
  return (struct accel_result){x, count, seconds};
}
