/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Collectives across DPUs in several regions at once, on a communicator each, while the hosts do theirs. */
#include <mpi.h>
#include <stdio.h>

enum { REGIONS = 3, MAX_RANKS = 64 };

int main(int argc, char** argv) {
  int rank = 0, size = 0, wrong = 0;
  int failures[REGIONS] = {0};
  MPI_Comm comms[REGIONS];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < REGIONS; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int i = 0; i < REGIONS; ++i) {
    int* const failure = &failures[i];
#pragma omp target nowait firstprivate(i) map(to : comms) map(from : failure [0:1])
    {
      const MPI_Comm comm = comms[i];
      int in[MAX_RANKS], out[MAX_RANKS], bad = 0;
      for (int peer = 0; peer < size; ++peer) in[peer] = 1000 * i + 10 * rank + peer;
      MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, comm);
      for (int peer = 0; peer < size; ++peer) bad |= out[peer] != 1000 * i + 10 * peer + rank;
      double sum = 0, own = rank + i;
      MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
      bad |= sum != size * i + size * (size - 1) / 2.0;
      MPI_Barrier(comm);
      failure[0] = bad;
    }
  }
  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comms[0]);
#pragma omp taskwait
  for (int i = 0; i < REGIONS; ++i) wrong |= failures[i];
  for (int i = 0; i < REGIONS; ++i) MPI_Comm_free(&comms[i]);
  printf("rank %d: %s\n", rank, wrong || sum != size * (size - 1) / 2 ? "wrong" : "right");
  MPI_Finalize();
  return wrong;
}
