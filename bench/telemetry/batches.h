/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The time of something short, in batches of CALLS: the smallest and the median of the batches count. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCHES = 200, CALLS = 500 };

static double batches_ns[BATCHES]; /* of each call */

static void end_batch(int batch, double begin) { batches_ns[batch] = (MPI_Wtime() - begin) / CALLS * 1e9; }

static int ascending(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return (a > b) - (a < b);
}

/* By the first rank. */
static void print_batches(void) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  qsort(batches_ns, BATCHES, sizeof batches_ns[0], ascending);
  if (rank == 0) printf("least_ns=%.0f median_ns=%.0f\n", batches_ns[0], batches_ns[BATCHES / 2]);
}
