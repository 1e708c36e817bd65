/* SPDX-License-Identifier: BSD-3-Clause
 * Native communication moves while an offloaded operation is waited for: rank 1 is in a large blocking send and
 * enters the collective only after rank 0, which waits for the collective, has received it. */
#include "world.h"

enum { BIG = 8 << 20 };

int main(int argc, char** argv) {
  enter(&argc, &argv);
  char* big = malloc(BIG);
  int *send = calloc((size_t)size, sizeof(int)), *recv = calloc((size_t)size, sizeof(int));
  for (int variant = 0; variant < 4; ++variant) {
    int ok = 1;
    MPI_Request both[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    memset(big, rank == 1 ? 7 : 0, BIG);
    for (int i = 0; i < size; ++i) send[i] = value_of(rank, i, 0, variant);
    if (rank == 0) MPI_Irecv(big, BIG, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &both[0]);
    if (rank == 1) MPI_Send(big, BIG, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    MPI_Ialltoall(send, 1, MPI_INT, recv, 1, MPI_INT, MPI_COMM_WORLD, &both[1]);
    int index = 0, count = 0, indices[2], flag = 0;
    switch (variant) {
      case 0:
        MPI_Wait(&both[1], MPI_STATUS_IGNORE);
        break;
      case 1:
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        break;
      case 2:
        do MPI_Waitany(2, both, &index, MPI_STATUS_IGNORE);
        while (index != 1);
        break;
      default:
        while (both[1] != MPI_REQUEST_NULL) MPI_Waitsome(2, both, &count, indices, MPI_STATUSES_IGNORE);
    }
    (void)flag;
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    for (int i = 0; i < size; ++i) ok &= recv[i] == value_of(i, rank, 0, variant);
    if (rank < 2) ok &= big[0] == 7 && big[BIG - 1] == 7;
    static const char* const names[] = {"wait", "waitall", "waitany", "waitsome"};
    report(names[variant], ok);
  }
  free(big);
  free(send);
  free(recv);
  return finish();
}
