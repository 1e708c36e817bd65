// SPDX-License-Identifier: BSD-3-Clause
// Writes more to stderr, which may be closed, than a socket holds.
#include <stdio.h>

int main(void) {
  int count = 0;
#pragma omp target map(tofrom : count)
  count++;
  for (int i = 0; i < 100000; i++) {
    fprintf(stderr, "line %d\n", i);
  }
#pragma omp target map(tofrom : count)
  count++;
  return count != 2;
}
