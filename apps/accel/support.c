// SPDX-License-Identifier: BSD-3-Clause
#include "accel.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

double* accel_doubles(long count) {
  double* values = malloc((size_t)count * sizeof(double));
  if (values == NULL) {
    fprintf(stderr, "accel: %ld numbers do not fit into memory. Give a smaller --size\n", count);
    exit(1);
  }
  return values;
}

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
double accel_random(long index) {
  uint64_t z = ((uint64_t)index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}
