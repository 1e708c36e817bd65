// SPDX-License-Identifier: BSD-3-Clause
// Structures with pointers that the device has attached to what they point to: they come back with the host's.
#include "check.h"

struct holder {
  int count;
  double* values;
  int mark;
};

static void updated(void) {
  double values[4] = {0, 1, 2, 3};
  struct holder holder = {4, values, 1};
#pragma omp target enter data map(to : holder)
#pragma omp target enter data map(to : holder.values [0:4])
#pragma omp target map(holder)
  {
    holder.values[3] = 33;
    holder.mark = 2;
  }
#pragma omp target update from(holder)
  CHECK(holder.values == values && holder.mark == 2 && values[3] == 3);
  holder.mark = 5;
#pragma omp target update to(holder)
#pragma omp target map(holder)
  holder.values[0] = holder.mark;
#pragma omp target exit data map(from : holder.values [0:4])
#pragma omp target exit data map(from : holder)
  CHECK(holder.values == values && values[0] == 5 && values[3] == 33);
}

static void mapped_with_a_region(void) {
  double values[3] = {1, 2, 3};
  struct holder holder = {3, values, 1};
  int first = 0, last = 0;
#pragma omp target map(tofrom : holder, holder.values [0:3]) map(from : first, last)
  {
    first = holder.count;
    holder.values[1] = 22;
    holder.mark = last = 9;
  }
  CHECK(holder.values == values && holder.mark == 9 && values[1] == 22 && first == 3 && last == 9);
}

int main(void) {
  check_place();
  updated();
  mapped_with_a_region();
  return check_status();
}
