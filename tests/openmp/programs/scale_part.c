// SPDX-License-Identifier: BSD-3-Clause
#pragma omp declare target
static int extra = 2;
static int doubled(int value) { return 2 * value; }
#pragma omp end declare target

int part(int value) {
  int result = 0;
#pragma omp target map(from : result)
  result = doubled(value) + extra;
  return result;
}
