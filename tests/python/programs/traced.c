/* SPDX-License-Identifier: BSD-3-Clause
 * Collectives and one-sided operations for traces: ROUNDS times an alltoall behind work, then puts and a get to the
 * next rank. Each rank checks what it got. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 65536, SHORT = 8, SHORTS = 20, ROUNDS = 4, WORK_US = 60000 };

static void check(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "wrong data: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  char* send = malloc((size_t)size * BLOCK);
  char* recv = malloc((size_t)size * BLOCK);
  char* memory;
  MPI_Win window;
  MPI_Win_allocate(2 * BLOCK + SHORTS * SHORT, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  memset(memory, 'a' + rank, 2 * BLOCK);
  MPI_Win_lock_all(0, window);
  for (int round = 0; round < ROUNDS; ++round) {
    MPI_Request request;
    memset(send, '0' + rank + round, (size_t)size * BLOCK);
    MPI_Ialltoall(send, BLOCK, MPI_CHAR, recv, BLOCK, MPI_CHAR, MPI_COMM_WORLD, &request);
    usleep(WORK_US);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < size; ++i) check(recv[(i + 1) * BLOCK - 1] == '0' + i + round, "alltoall");

    MPI_Put(send, BLOCK, MPI_CHAR, next, BLOCK, BLOCK, MPI_CHAR, window);
    for (int i = 0; i < SHORTS; ++i)
      MPI_Put(send, SHORT, MPI_CHAR, next, 2 * BLOCK + i * SHORT, SHORT, MPI_CHAR, window);
    MPI_Rget(recv, BLOCK, MPI_CHAR, next, 0, BLOCK, MPI_CHAR, window, &request);
    usleep(WORK_US);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(recv[BLOCK - 1] == 'a' + next, "get");
    MPI_Win_flush_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    check(memory[2 * BLOCK - 1] == '0' + previous + round, "long put");
    check(memory[2 * BLOCK + SHORTS * SHORT - 1] == '0' + previous + round, "short put");
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  free(send);
  free(recv);
  MPI_Finalize();
  return 0;
}
