/* SPDX-License-Identifier: BSD-3-Clause
 * MPI_THREAD_MULTIPLE: every thread has its own communicator; half of the requests are completed by the next thread. */
#include "world.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 40, COUNT = 257 };

static MPI_Comm comms[THREADS];
static MPI_Request handed[THREADS];
static int* handed_data[THREADS];
static pthread_barrier_t barrier;
static int bad[THREADS];

static void* work(void* argument) {
  const int me = (int)(size_t)argument;
  int *send = malloc(sizeof(int) * (size_t)(COUNT * size)), *recv = malloc(sizeof(int) * (size_t)(COUNT * size));
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < COUNT * size; ++i) send[i] = value_of(rank, i / COUNT, i % COUNT, round * THREADS + me);
    MPI_Ialltoall(send, COUNT, MPI_INT, recv, COUNT, MPI_INT, comms[me], &handed[me]);
    handed_data[me] = recv;
    int owner = me;
    if (round % 2 == 1) {
      pthread_barrier_wait(&barrier);
      owner = (me + 1) % THREADS;
    }
    if (round % 4 < 2) {
      MPI_Wait(&handed[owner], MPI_STATUS_IGNORE);
    } else {
      for (int flag = 0; !flag;) MPI_Test(&handed[owner], &flag, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < COUNT * size; ++i)
      bad[me] += handed_data[owner][i] != value_of(i / COUNT, rank, i % COUNT, round * THREADS + owner);
    if (round % 2 == 1) pthread_barrier_wait(&barrier);
  }
  free(send);
  free(recv);
  return NULL;
}

int main(int argc, char** argv) {
  if (!enter_with_threads(&argc, &argv)) return 77;
  pthread_t threads[THREADS];
  pthread_barrier_init(&barrier, NULL, THREADS);
  for (size_t i = 0; i < THREADS; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (size_t i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, work, (void*)i);
  int ok = 1;
  for (size_t i = 0; i < THREADS; ++i) {
    pthread_join(threads[i], NULL);
    ok &= bad[i] == 0;
  }
  for (size_t i = 0; i < THREADS; ++i) MPI_Comm_free(&comms[i]);
  report("threads", ok);
  return finish();
}
