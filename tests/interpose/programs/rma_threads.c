/* SPDX-License-Identifier: BSD-3-Clause
 * MPI_THREAD_MULTIPLE: threads that share one window, and threads that lock windows of their own. */
#include "world.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 100, CELLS = 32 };

static long *shared_memory, *own_memory[THREADS];
static MPI_Win shared_win, own_wins[THREADS];
static int bad[THREADS];

static void* work(void* argument) {
  const int me = (int)(size_t)argument;
  const int next = (rank + 1) % size;
  long one = 1, old, sent[CELLS], got[CELLS];
  for (int round = 0; round < ROUNDS; ++round) {
    MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 0, MPI_SUM, shared_win);
    for (int i = 0; i < CELLS; ++i) sent[i] = value_of(rank, me, i, round);
    MPI_Put(sent, CELLS, MPI_LONG, next, 1 + me * CELLS, CELLS, MPI_LONG, shared_win);
    MPI_Win_flush(next, shared_win);
    MPI_Request request;
    MPI_Rget(got, CELLS, MPI_LONG, next, 1 + me * CELLS, CELLS, MPI_LONG, shared_win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    bad[me] += memcmp(got, sent, sizeof(got)) != 0;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, own_wins[me]);
    MPI_Get(&old, 1, MPI_LONG, next, 0, 1, MPI_LONG, own_wins[me]);
    MPI_Win_flush(next, own_wins[me]);
    ++old;
    MPI_Put(&old, 1, MPI_LONG, next, 0, 1, MPI_LONG, own_wins[me]);
    MPI_Win_unlock(next, own_wins[me]);
  }
  MPI_Win_flush_all(shared_win);
  return NULL;
}

/* Fetched data that is spread out at the origin: who is told that it is there, by a flush or by its request, has all of it. */
enum { INTS = 1 << 20, GETS = 20 };
static int *spread_memory, *spread_got;
static MPI_Win spread_win;
static MPI_Request spread_request;

static int is_spread(int round) {
  int right = 1;
  for (int i = 0; i < INTS; ++i) right &= spread_got[2 * i] == i + round;
  return right;
}

static void* flush(void* argument) {
  MPI_Win_flush((rank + 1) % size, spread_win);
  bad[0] += !is_spread(*(int*)argument);
  return NULL;
}

static void fetched(void) {
  MPI_Datatype type;
  pthread_t thread;
  const int next = (rank + 1) % size;
  MPI_Type_vector(INTS, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Win_allocate(INTS * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &spread_memory, &spread_win);
  spread_got = malloc(2 * INTS * sizeof(int));
  bad[0] = bad[1] = 0;
  for (int round = 0; round < GETS; ++round) {
    for (int i = 0; i < INTS; ++i) spread_memory[i] = i + round;
    memset(spread_got, 0, 2 * INTS * sizeof(int));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, spread_win);
    MPI_Rget(spread_got, 1, type, next, 0, INTS, MPI_INT, spread_win, &spread_request);
    pthread_create(&thread, NULL, flush, &round);
    MPI_Wait(&spread_request, MPI_STATUS_IGNORE);
    bad[1] += !is_spread(round);
    pthread_join(thread, NULL);
    MPI_Win_unlock(next, spread_win);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  report("fetched data", bad[0] + bad[1] == 0);
  MPI_Win_free(&spread_win);
  MPI_Type_free(&type);
  free(spread_got);
}

int main(int argc, char** argv) {
  if (!enter_with_threads(&argc, &argv)) return 77;
  const MPI_Aint bytes = sizeof(long) * (1 + THREADS * CELLS);
  MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &shared_memory, &shared_win);
  *shared_memory = 0;
  for (int i = 0; i < THREADS; ++i) {
    MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &own_memory[i], &own_wins[i]);
    *own_memory[i] = 0;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  pthread_t threads[THREADS];
  MPI_Win_lock_all(0, shared_win);
  for (size_t i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, work, (void*)i);
  int ok = 1;
  for (size_t i = 0; i < THREADS; ++i) {
    pthread_join(threads[i], NULL);
    ok &= bad[i] == 0;
  }
  MPI_Win_unlock_all(shared_win);
  MPI_Barrier(MPI_COMM_WORLD);
  report("shared window", ok && (rank != 0 || shared_memory[0] == (long)ROUNDS * THREADS * size));
  ok = 1;
  for (int i = 0; i < THREADS; ++i) ok &= own_memory[i][0] == ROUNDS;
  report("own windows", ok);
  fetched();
  MPI_Win_free(&shared_win);
  for (int i = 0; i < THREADS; ++i) MPI_Win_free(&own_wins[i]);
  return finish();
}
