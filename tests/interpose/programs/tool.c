/* SPDX-License-Identifier: BSD-3-Clause
 * Another preloaded tool: counts calls by the profiling interface and says so at the end. */
#include <mpi.h>
#include <stdio.h>

static int ialltoalls, waits;

int MPI_Ialltoall(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count,
                  MPI_Datatype recv_type, MPI_Comm comm, MPI_Request* request) {
  ++ialltoalls;
  return PMPI_Ialltoall(send, send_count, send_type, recv, recv_count, recv_type, comm, request);
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  ++waits;
  return PMPI_Wait(request, status);
}

int MPI_Finalize(void) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) fprintf(stderr, "tool: %d ialltoall, %d wait\n", ialltoalls, waits);
  return PMPI_Finalize();
}
