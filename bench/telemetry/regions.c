/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a region with a name costs: its begin and its end, alone. Run it natively, under `offpath run` and under
 * `offpath run --trace`. Prints the smallest and the median of the batches, in ns per region, on the first rank. */
#include <mpi.h>
#include <offpath/region.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCHES = 200, REGIONS = 500 };

static int ascending(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return (a > b) - (a < b);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  static double ns[BATCHES];
  for (int batch = 0; batch < BATCHES; ++batch) {
    const double begin = MPI_Wtime();
    for (int i = 0; i < REGIONS; ++i) {
      offpath_region_begin("region");
      offpath_region_end("region");
    }
    ns[batch] = (MPI_Wtime() - begin) / REGIONS * 1e9;
  }
  qsort(ns, BATCHES, sizeof ns[0], ascending);
  if (rank == 0) printf("least_ns=%.0f median_ns=%.0f\n", ns[0], ns[BATCHES / 2]);
  MPI_Finalize();
  return 0;
}
