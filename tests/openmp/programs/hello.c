// SPDX-License-Identifier: BSD-3-Clause
// The smallest program: the device greets, and says what it is.
#include <stdio.h>

int main(void) {
#pragma omp target
  {
#if defined(__aarch64__)
    puts("Hello from aarch64");
#else
    puts("Hello from x86_64");
#endif
  }
  return 0;
}
