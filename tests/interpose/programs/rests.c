/* SPDX-License-Identifier: BSD-3-Clause
 * Ranks that take turns on one core wait for one that sleeps: in native calls, in a loop of tests, and for a collective
 * that the service has begun. Each says whether it slept meanwhile. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kLong = 1 << 18 };

static double seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int rank;
static double begin, used;

static void start(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  begin = seconds(CLOCK_MONOTONIC);
  used = seconds(CLOCK_PROCESS_CPUTIME_ID);
  if (rank == 0) nanosleep(&(struct timespec){0, 700000000}, NULL);
}

static void say(const char* what) {
  const double waited = seconds(CLOCK_MONOTONIC) - begin;
  used = seconds(CLOCK_PROCESS_CPUTIME_ID) - used;
  if (rank == 0) return;
  if (used < waited / 3)
    printf("%s: slept\n", what);
  else
    printf("%s: kept the core for %.3f of %.3f s\n", what, used, waited);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int size, word = 7, flag = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Request request;
  int* all = calloc((size_t)size * kLong, sizeof(int));
  int* own = calloc((size_t)size * kLong, sizeof(int));
  if (all == NULL || own == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  /* Until the service has begun something for one of them the ranks wait as without it. The last one gives it nothing. */
  MPI_Comm but_last;
  MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1, rank, &but_last);
  if (rank != size - 1) {
    MPI_Ialltoall(own, kLong, MPI_INT, all, kLong, MPI_INT, but_last, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Comm_free(&but_last);

  start();
  MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
  say("MPI_Bcast");

  start();
  if (rank == 0) {
    for (int i = 1; i < size; ++i) MPI_Send(&word, 1, MPI_INT, i, 1, MPI_COMM_WORLD);
  } else {
    MPI_Recv(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  say("MPI_Recv");

  start();
  if (rank == 0) {
    for (int i = 1; i < size; ++i) MPI_Send(&word, 1, MPI_INT, i, 2, MPI_COMM_WORLD);
  } else {
    MPI_Irecv(&word, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, &request);
    for (flag = 0; !flag;) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  }
  say("MPI_Test");

  start();
  MPI_Ialltoall(own, kLong, MPI_INT, all, kLong, MPI_INT, MPI_COMM_WORLD, &request);
  MPI_Barrier(MPI_COMM_WORLD);
  say("MPI_Barrier beside a collective");
  MPI_Wait(&request, MPI_STATUS_IGNORE);

  MPI_Finalize();
  free(own);
  free(all);
  return 0;
}
