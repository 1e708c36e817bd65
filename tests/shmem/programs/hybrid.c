/* SPDX-License-Identifier: BSD-3-Clause
 * MPI and OpenSHMEM in one program. */
#include "check.h"

#include <mpi.h>

static long word;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  begin();
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  report("the same processes", rank == me && size == pes);
  long *send = calloc((size_t)pes, sizeof(long)), *recv = calloc((size_t)pes, sizeof(long));
  for (int i = 0; i < pes; ++i) send[i] = me * 100 + i;
  MPI_Request request;
  MPI_Ialltoall(send, 1, MPI_LONG, recv, 1, MPI_LONG, MPI_COMM_WORLD, &request);
  shmem_long_atomic_add(&word, me + 1, (me + 1) % pes);
  shmem_barrier_all();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  int ok = word == (me + pes - 1) % pes + 1;
  for (int i = 0; i < pes; ++i) ok &= recv[i] == i * 100 + me;
  report("both", ok);
  free(send);
  free(recv);
  shmem_finalize();
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) MPI_Finalize();
  return check_failures == 0 ? 0 : 1;
}
