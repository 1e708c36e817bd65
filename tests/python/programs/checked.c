// SPDX-License-Identifier: BSD-3-Clause
// One of each kind of communication that can be offloaded, the results computed again by hand: "3 of 4: right" from
// each rank, or what was wrong and status 1. Plain MPI 3, so that any MPI's compiler takes it.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 3000, ROUNDS = 3 };

static int wrong;

static void check(const char* what, int i, long got, long expected) {
  if (got != expected && wrong++ == 0) printf("%s: element %d is %ld, not %ld\n", what, i, got, expected);
}

static void alltoall_and_allreduce(int rank, int size, int round) {
  int* to = malloc(sizeof(int) * COUNT * size);
  int* from = malloc(sizeof(int) * COUNT * size);
  double summand[COUNT], sum[COUNT];
  MPI_Request requests[2];
  for (int i = 0; i < COUNT * size; i++) to[i] = round + rank * COUNT * size + i;
  for (int i = 0; i < COUNT; i++) summand[i] = round + rank + i;
  MPI_Ialltoall(to, COUNT, MPI_INT, from, COUNT, MPI_INT, MPI_COMM_WORLD, &requests[0]);
  MPI_Iallreduce(summand, sum, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < COUNT * size; i++) {
    check("alltoall", i, from[i], round + i / COUNT * COUNT * size + rank * COUNT + i % COUNT);
  }
  for (int i = 0; i < COUNT; i++) check("allreduce", i, (long)sum[i], (round + i) * size + size * (size - 1) / 2);
  free(to);
  free(from);
}

static void put_and_accumulate(int rank, int size, int round) {
  long* memory;
  long one = 1, put = 100 * round + rank;
  MPI_Win window;
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Win_allocate(2 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  memory[0] = memory[1] = 0;
  MPI_Win_fence(0, window);
  MPI_Put(&put, 1, MPI_LONG, next, 0, 1, MPI_LONG, window);
  MPI_Win_fence(0, window);
  check("put", 0, memory[0], 100 * round + before);
  MPI_Win_fence(0, window);
  MPI_Win_lock_all(0, window);
  for (int target = 0; target < size; target++) {
    MPI_Accumulate(&one, 1, MPI_LONG, target, 1, 1, MPI_LONG, MPI_SUM, window);
  }
  MPI_Win_unlock_all(window);
  MPI_Win_fence(0, window);
  check("accumulate", 1, memory[1], size);
  MPI_Win_free(&window);
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int round = 0; round < ROUNDS; round++) {
    alltoall_and_allreduce(rank, size, round);
    put_and_accumulate(rank, size, round);
  }
  printf("%d of %d: %s\n", rank, size, wrong ? "WRONG" : "right");
  MPI_Finalize();
  return wrong != 0;
}
