// SPDX-License-Identifier: BSD-3-Clause
// Two images: one of the program, one of a library that it is linked with; and two sources, compiled on their own, each
// with a static variable of one name.
#include "check.h"

int scale(double* values, long count, double factor);
int part(int value);

#pragma omp declare target
static int extra = 100;
#pragma omp end declare target

int main(void) {
  check_place();
  double values[1000];
  for (int i = 0; i < 1000; i++) {
    values[i] = i;
  }
  CHECK(scale(values, 1000, 3) == 1);
  CHECK(values[999] == 2997);
#pragma omp target map(tofrom : values)
  values[0] = values[999] + 1;
  CHECK(values[0] == 2998);
  CHECK(scale(values, 1000, 0.5) == 2);
  CHECK(values[0] == 1499);
  CHECK(part(20) == 42);
  int seen = 0;
  extra = 101;
#pragma omp target update to(extra)
#pragma omp target map(from : seen)
  seen = extra;
  CHECK(seen == 101 && part(30) == 62);
  return check_status();
}
