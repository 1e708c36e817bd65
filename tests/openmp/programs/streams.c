// SPDX-License-Identifier: BSD-3-Clause
// A region writes to both streams.
#include <stdio.h>

int main(void) {
#pragma omp target
  {
    fprintf(stdout, "to stdout\n");
    fprintf(stderr, "to stderr\n");
  }
  return 0;
}
