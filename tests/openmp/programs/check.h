// SPDX-License-Identifier: BSD-3-Clause
// Shared by the programs with target regions: what is wrong is counted and printed, and makes main's status 1.
#pragma once

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static int check_failures = 0;

#define CHECK(condition)                                                 \
  do {                                                                   \
    if (!(condition)) {                                                  \
      printf("%s:%d: %s is not true\n", __FILE__, __LINE__, #condition); \
      check_failures++;                                                  \
    }                                                                    \
  } while (0)

// Regions must run where the test wants them: on a device unless OFFPATH_TEST_HOST is set.
static inline void check_place(void) {
  int initial = -1;
#pragma omp target map(from : initial)
  initial = omp_is_initial_device();
  CHECK(initial == (getenv("OFFPATH_TEST_HOST") != NULL));
}

static inline int check_status(void) {
  if (check_failures == 0) {
    puts("all is right");
  }
  return check_failures != 0;
}
