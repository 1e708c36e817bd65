/* SPDX-License-Identifier: BSD-3-Clause
 * What a program may do with buffers that communicate again and again, and so are moved where they are moved: nothing of it may
 * show. */
#define _GNU_SOURCE
#include "world.h"

#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { COUNT = 48 * 1024, ROUNDS = 8 }; /* 192 KiB for each peer */

static int rounds;

/* The bytes before and behind belong to others. */
static int exchange(int* send, int* recv, int count) { return all_to_all(send, recv, count, ++rounds); }

static size_t bytes_of(int count) { return (size_t)size * (size_t)count * sizeof(int); }

static int in_turn(void) {
  int ok = 1;
  int *send = malloc(bytes_of(COUNT)), *recv = malloc(bytes_of(COUNT));
  for (int i = 0; i < ROUNDS; ++i) ok &= exchange(send, recv, COUNT) && exchange(recv, send, COUNT);
  free(send);
  free(recv);
  return ok;
}

static int is_zero(const int* at, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (at[i] != 0) return 0;
  return 1;
}

/* Memory that is given back and had again, in other sizes. */
static int freed(void) {
  int ok = 1;
  for (int i = 0; i < 40; ++i) {
    const int count = COUNT - i % 5 * 3000, more = COUNT + i % 3 * 9000;
    int *send = malloc(bytes_of(count)), *recv = calloc((size_t)size * (size_t)count, sizeof(int));
    ok &= is_zero(recv, (size_t)size * (size_t)count);
    ok &= exchange(send, recv, count) && exchange(send, recv, count) && exchange(send, recv, count);
    const int last = recv[size * count - 1];
    recv = realloc(recv, bytes_of(more));
    ok &= recv[size * count - 1] == last;
    send = realloc(send, bytes_of(more));
    ok &= exchange(send, recv, more) && exchange(send, recv, more);
    if (i % 2 == 0) free(send), send = NULL;
    free(recv);
    if (i % 7 == 0) malloc_trim(0);
    free(send);
  }
  return ok;
}

/* The library's own messages from and into the same memory. */
static int messages(void) {
  int ok = 1;
  const int total = size * COUNT, next = (rank + 1) % size, before = (rank + size - 1) % size;
  int *send = malloc(bytes_of(COUNT)), *recv = malloc(bytes_of(COUNT));
  for (int round = 0; round < ROUNDS; ++round) {
    ok &= exchange(send, recv, COUNT);
    for (int i = 0; i < total; ++i) send[i] = value_of(rank, next, i, round);
    MPI_Request requests[3];
    MPI_Irecv(recv, total, MPI_INT, before, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(send, total, MPI_INT, next, 7, MPI_COMM_WORLD, &requests[1]);
    /* The same memory is sent by both at once. */
    int* others = malloc(bytes_of(COUNT));
    MPI_Ialltoall(send, COUNT, MPI_INT, others, COUNT, MPI_INT, MPI_COMM_WORLD, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < total; ++i) ok &= recv[i] == value_of(before, rank, i, round);
    for (int p = 0; p < size; ++p)
      for (int i = 0; i < COUNT; ++i)
        ok &= others[p * COUNT + i] == value_of(p, (p + 1) % size, rank * COUNT + i, round);
    free(others);
  }
  free(send);
  free(recv);
  return ok;
}

static int reductions(void) {
  int ok = 1;
  int *send = malloc(bytes_of(COUNT)), *recv = malloc(bytes_of(COUNT));
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < COUNT; ++i) send[i] = rank + i % 1000 + round;
    MPI_Request request;
    MPI_Iallreduce(send, recv, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < COUNT; ++i) ok &= recv[i] == size * (size - 1) / 2 + size * (i % 1000 + round);
    MPI_Ibcast(recv, COUNT, MPI_INT, round % size, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Iallreduce(MPI_IN_PLACE, recv, COUNT, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < COUNT; ++i) ok &= recv[i] == size * (size - 1) / 2 + size * (i % 1000 + round);
  }
  free(send);
  free(recv);
  return ok;
}

/* A window over memory that communicates otherwise, too, in turn with it. */
static int window(void) {
  int ok = 1;
  int *memory = malloc(bytes_of(COUNT)), *recv = malloc(bytes_of(COUNT)), *origin = malloc(sizeof(int) * COUNT);
  for (int round = 0; round < 3; ++round) {
    MPI_Win win;
    if (round > 0)
      for (int i = 0; i < 3; ++i) ok &= exchange(memory, recv, COUNT);
    MPI_Win_create(memory, (MPI_Aint)bytes_of(COUNT), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int turn = 0; turn < 4; ++turn) {
      MPI_Win_fence(0, win);
      for (int i = 0; i < COUNT; ++i) origin[i] = value_of(rank, turn, i, round);
      for (int p = 0; p < size; ++p) MPI_Put(origin, COUNT, MPI_INT, p, (MPI_Aint)rank * COUNT, COUNT, MPI_INT, win);
      MPI_Win_fence(0, win);
      for (int p = 0; p < size; ++p)
        for (int i = 0; i < COUNT; ++i) ok &= memory[p * COUNT + i] == value_of(p, turn, i, round);
      MPI_Request request; /* nobody puts meanwhile */
      MPI_Ialltoall(memory, COUNT, MPI_INT, recv, COUNT, MPI_INT, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      for (int p = 0; p < size; ++p)
        for (int i = 0; i < COUNT; ++i) ok &= recv[p * COUNT + i] == value_of(rank, turn, i, round);
    }
    MPI_Win_free(&win);
  }
  free(memory);
  free(recv);
  free(origin);
  return ok;
}

static int child(void) {
  int *send = malloc(bytes_of(COUNT)), *recv = malloc(bytes_of(COUNT)), status = 0, go[2];
  int ok = exchange(send, recv, COUNT) && exchange(send, recv, COUNT) && exchange(send, recv, COUNT) && pipe(go) == 0;
  const pid_t process = fork();
  if (process == 0) {
    char byte;
    const int was = recv[5];
    ok = read(go[0], &byte, 1) == 1 && recv[5] == was && send[9] == value_of(rank, 0, 9, rounds);
    memset(recv, 0xEE, bytes_of(COUNT));
    _exit(ok ? 0 : 1);
  }
  const int kept = recv[7];
  send[9] = recv[5] = 12345678;
  ok &= write(go[1], "x", 1) == 1 && waitpid(process, &status, 0) == process && status == 0;
  ok &= recv[7] == kept && recv[5] == 12345678;
  ok &= exchange(send, recv, COUNT) && exchange(send, recv, COUNT);
  close(go[0]);
  close(go[1]);
  free(send);
  free(recv);
  return ok;
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  if (argc > 1) {
    report("window", window());
    return finish();
  }
  report("in turn", in_turn());
  report("freed", freed());
  report("messages", messages());
  report("reductions", reductions());
  report("window", window());
  report("child", child());
  int *send = malloc(bytes_of(COUNT)), *recv = malloc(bytes_of(COUNT));
  report("last", exchange(send, recv, COUNT) && exchange(send, recv, COUNT) && exchange(send, recv, COUNT));
  const int status = finish();
  for (int p = 0; p < size; ++p) /* of no use to anybody else any more */
    for (int i = 0; i < COUNT; ++i)
      if (recv[p * COUNT + i] != value_of(p, rank, i, rounds)) return 2;
  free(send);
  free(recv);
  return status;
}
