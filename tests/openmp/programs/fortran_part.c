// SPDX-License-Identifier: BSD-3-Clause
// What a Fortran program calls.
#include <omp.h>

void double_all(double* values, int count, int* on_host);
void double_all(double* values, int count, int* on_host) {
#pragma omp target map(tofrom : values [0:count]) map(from : on_host [0:1])
  {
    *on_host = omp_is_initial_device();
    for (int i = 0; i < count; i++) {
      values[i] *= 2;
    }
  }
}
