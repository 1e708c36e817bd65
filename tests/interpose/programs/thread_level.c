/* SPDX-License-Identifier: BSD-3-Clause
 * What a program is told of threads. Argument: what it asks for, from 0 on; none: it calls MPI_Init. */
#include "check.h"

int main(int argc, char** argv) {
  const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
  int provided = -1, asked = -1;
  if (argc > 1)
    MPI_Init_thread(&argc, &argv, levels[atoi(argv[1])], &provided);
  else
    MPI_Init(&argc, &argv);
  MPI_Query_thread(&asked);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("provided %d, then %d\n", provided, asked);
  return finish();
}
