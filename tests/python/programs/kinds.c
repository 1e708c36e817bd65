/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls of each kind that stays native within one node: on each rank 2 collectives, 3 messages of which 1 is long, 4
 * one-sided operations, 5 blocking messages, 1 blocking reduction, 1 file. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, value = 1, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int next = (rank + 1) % size, last = (rank + size - 1) % size, bytes = 512 << 10;
  char* send = calloc(2, (size_t)bytes);
  for (int i = 0; i < 2; ++i) {
    MPI_Request request;
    MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  const int lengths[] = {bytes, bytes - 1, 0};
  for (int i = 0; i < 3; ++i) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Irecv(send + bytes, bytes, MPI_CHAR, last, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(send, lengths[i], MPI_CHAR, next, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
  }
  MPI_Win window;
  MPI_Win_create(send, 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < 4; ++i) MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
  for (int i = 0; i < 5; ++i) {
    MPI_Sendrecv(&value, 1, MPI_INT, next, 1, &sum, 1, MPI_INT, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  MPI_File_close(&file);
  free(send);
  return MPI_Finalize();
}
