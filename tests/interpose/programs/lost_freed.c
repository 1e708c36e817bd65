/* SPDX-License-Identifier: BSD-3-Clause
 * Two ranks are through with a communicator and free it while the others' operations on it are not over, one of whom
 * loses its service then: rank 1, with its second operation. What the others await from those that have freed it comes
 * nevertheless. Each operation is among some ranks only, so that nobody else keeps the two. */
#include "world.h"

int main(int argc, char** argv) {
  int value = 0, failed = 0;
  MPI_Comm comm;
  MPI_Request requests[2];
  enter(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int* const all = malloc(sizeof(int) * (size_t)size);
  int* const from = malloc(sizeof(int) * (size_t)size);
  for (int r = 0; r < size; ++r) from[r] = value_of(0, r, 0, 0);
  if (rank == 1) {
    for (int r = 2; r < size; ++r) MPI_Recv(NULL, 0, MPI_BYTE, r, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Iscatter(from, 1, MPI_INT, &value, 1, MPI_INT, 0, comm, &requests[0]);
  MPI_Igather(&rank, 1, MPI_INT, all, 1, MPI_INT, 0, comm, &requests[1]);
  for (int k = 0; k < 2; ++k) failed += MPI_Wait(&requests[k], MPI_STATUS_IGNORE) != MPI_SUCCESS;
  MPI_Comm_free(&comm);
  if (rank > 1) MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
  if (argc > 1) {
    printf("rank %d failed %d\n", rank, failed);
    return finish();
  }
  report("those that have freed it", rank < 2 || (failed == 0 && value == value_of(0, rank, 0, 0)));
  int total;
  MPI_Allreduce(&failed, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("failed %d\n", total);
  free(all);
  free(from);
  return finish();
}
