/* SPDX-License-Identifier: BSD-3-Clause
 * What a communicator costs: microseconds per MPI_Comm_dup and MPI_Comm_free, one after the other and many at a time,
 * the slowest rank's. Knows nothing of Offpath: run it with and without, in turns (docs/design/0003-collectives.md).
 * Arguments: repetitions, communicators at a time. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double measure(int repetitions, int at_a_time, MPI_Comm* comms) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < repetitions; i += at_a_time) {
    for (int k = 0; k < at_a_time; ++k) MPI_Comm_dup(MPI_COMM_WORLD, &comms[k]);
    for (int k = 0; k < at_a_time; ++k) MPI_Comm_free(&comms[k]);
  }
  double own = (MPI_Wtime() - begin) * 1e6 / repetitions, slowest = 0;
  MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int repetitions = argc > 1 ? atoi(argv[1]) : 2000;
  const int at_a_time = argc > 2 ? atoi(argv[2]) : 100;
  if (repetitions < 1 || at_a_time < 1) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Comm* comms = malloc((size_t)at_a_time * sizeof(MPI_Comm));
  measure(at_a_time, at_a_time, comms); /* what the first ones cost is not asked */
  const double single = measure(repetitions, 1, comms);
  const double many = measure((repetitions + at_a_time - 1) / at_a_time * at_a_time, at_a_time, comms);
  if (rank == 0)
    printf("%d ranks: %.1f us per dup and free, %.1f us with %d at a time\n", size, single, many, at_a_time);
  free(comms);
  MPI_Finalize();
  return 0;
}
