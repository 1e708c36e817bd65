/* SPDX-License-Identifier: BSD-3-Clause
 * What the README shows: ten alltoalls of 1 MiB to each rank beside something else to do. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 1 << 17, ROUNDS = 10 };

int main(int argc, char** argv) {
  int size;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double* send = calloc((size_t)size * COUNT, sizeof(double));
  double* receive = calloc((size_t)size * COUNT, sizeof(double));
  for (int i = 0; i < ROUNDS; ++i) {
    MPI_Request request;
    MPI_Ialltoall(send, COUNT, MPI_DOUBLE, receive, COUNT, MPI_DOUBLE, MPI_COMM_WORLD, &request);
    usleep(50000);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  free(send);
  free(receive);
  MPI_Finalize();
}
