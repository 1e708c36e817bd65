/* SPDX-License-Identifier: BSD-3-Clause
 * How much of nonblocking messages hides behind computation: two ranks send each other a message, compute for a fixed amount
 * of work, and wait. Knows nothing of Offpath.
 * Usage: messages BYTES WORK_US REPETITIONS
 * Prints one line: bytes, and medians in us of the exchange alone, the work alone, and both at once. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static volatile double sink;

static void compute(long steps) {
  double x = 1;
  for (long i = 0; i < steps; ++i) x = x * 0.999999 + 1e-7;
  sink = x;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static char *out, *in;
static int peer, bytes;

static double exchange(long steps) {
  MPI_Request requests[2];
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  MPI_Irecv(in, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[1]);
  compute(steps);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  return (MPI_Wtime() - begin) * 1e6;
}

static double median(long steps, int repetitions, int sends) {
  double* times = malloc(sizeof(double) * (size_t)repetitions);
  for (int i = 0; i < repetitions; ++i) {
    if (sends) {
      times[i] = exchange(steps);
    } else {
      const double begin = MPI_Wtime();
      compute(steps);
      times[i] = (MPI_Wtime() - begin) * 1e6;
    }
  }
  qsort(times, (size_t)repetitions, sizeof(double), &by_value);
  double middle = times[repetitions / 2], longest = 0;
  free(times);
  MPI_Allreduce(&middle, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return longest;
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc < 4) {
    if (rank == 0) fprintf(stderr, "usage: messages BYTES WORK_US REPETITIONS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  peer = 1 - rank;
  bytes = atoi(argv[1]);
  const int repetitions = atoi(argv[3]);
  out = calloc((size_t)bytes + 1, 1);
  in = calloc((size_t)bytes + 1, 1);
  for (int i = 0; i < 6; ++i) exchange(0);
  /* The same amount of work whatever else uses the core: found out while nothing does. */
  const long probe = 20000000;
  double begin = MPI_Wtime();
  compute(probe);
  long steps = (long)(atof(argv[2]) * 1e-6 / (MPI_Wtime() - begin) * (double)probe);
  MPI_Bcast(&steps, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  const double pure = median(0, repetitions, 1), work = median(steps, repetitions, 0),
               both = median(steps, repetitions, 1);
  if (rank == 0)
    printf("%d bytes: pure %.0f us, work %.0f us, both %.0f us, efficiency %.3f\n", bytes, pure, work, both,
           (pure > work ? pure : work) / both);
  MPI_Finalize();
  return 0;
}
