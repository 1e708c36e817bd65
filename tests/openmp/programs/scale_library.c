// SPDX-License-Identifier: BSD-3-Clause
// A shared library that has target regions itself.
#pragma omp declare target
static int calls;
#pragma omp end declare target

int scale(double* values, long count, double factor) {
  int made = 0;
#pragma omp target parallel for map(tofrom : values [0:count])
  for (long i = 0; i < count; i++) {
    values[i] *= factor;
  }
#pragma omp target map(from : made)
  made = ++calls;
  return made;
}
