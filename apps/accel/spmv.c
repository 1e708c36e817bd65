// SPDX-License-Identifier: BSD-3-Clause
// Sparse matrix times vector, y = A x then x = y / |y|, a few times: indirect reads. Rows have 1 to 31 elements in
// compressed-row storage; the matrix is mapped once and stays.
#include "accel.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

enum { PRODUCTS = 10, LONGEST_ROW = 31 };

struct accel_result accel_spmv(long size, bool on_device) {
  long* row = malloc((size_t)(size + 1) * sizeof(long));
  long* column = malloc((size_t)(size * LONGEST_ROW) * sizeof(long));
  double *value = accel_doubles(size * LONGEST_ROW), *x = accel_doubles(size), *y = accel_doubles(size);
  long count = 0;
  for (long i = 0; i < size; i++) {
    row[i] = count;
    x[i] = 1 + accel_random(i);
    const long length = 1 + (long)(accel_random(-i) * LONGEST_ROW);
    for (long j = 0; j < length; j++, count++) {
      column[count] = (long)(accel_random(count * 3) * (double)size);
      value[count] = accel_random(count * 5) + 0.1;
    }
  }
  row[size] = count;
  const double start = omp_get_wtime();
#pragma omp target data if (on_device) map(to                                                                       \
                                           : row [0:size + 1], column [0:count], value [0:count]) map(alloc         \
                                                                                                      : y [0:size]) \
    map(tofrom                                                                                                      \
        : x [0:size])
  for (int product = 0; product < PRODUCTS; product++) {
    double square = 0;
#pragma omp target parallel for if (target : on_device) map(tofrom : square) reduction(+ : square) schedule(dynamic, 256)
    for (long i = 0; i < size; i++) {
      double sum = 0;
      for (long j = row[i]; j < row[i + 1]; j++) {
        sum += value[j] * x[column[j]];
      }
      y[i] = sum;
      square += sum * sum;
    }
    const double scale = 1 / sqrt(square);
#pragma omp target parallel for if (target : on_device)
    for (long i = 0; i < size; i++) {
      x[i] = y[i] * scale;
    }
  }
  const double seconds = omp_get_wtime() - start;
  free(row);
  free(column);
  free(value);
  free(y);
  return (struct accel_result){x, size, seconds};
}
