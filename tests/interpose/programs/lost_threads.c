/* SPDX-License-Identifier: BSD-3-Clause
 * Threads with messages under way when the service dies: each sends both ways, and receives in all ways. Argument: a
 * folder. */
#include "losing.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 3, TURNS = 8 };

static atomic_int all_right = 1;
static pthread_barrier_t all_posted;

static void get(unsigned char* data, int from, int tag, int way) {
  MPI_Message message;
  MPI_Request request;
  int done = 0;
  if (way == 0) MPI_Probe(from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (way == 1) {
    MPI_Mprobe(from, tag, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(data, BYTES, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  } else if (way == 2) {
    MPI_Irecv(data, BYTES, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
    while (!done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(data, BYTES, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void* talk(void* argument) {
  const int thread = *(int*)argument;
  MPI_Request requests[2];
  unsigned char* const data = malloc(3 * BYTES);
  for (int turn = 0; turn < TURNS; ++turn) {
    fill(data, rank, thread), fill(data + BYTES, rank, thread);
    MPI_Isend(data, BYTES, MPI_BYTE, right_of, thread, MPI_COMM_WORLD, &requests[0]);
    MPI_Issend(data + BYTES, BYTES, MPI_BYTE, left_of, 10 + thread, MPI_COMM_WORLD, &requests[1]);
    if (turn == 0) pthread_barrier_wait(&all_posted);
    get(data + 2 * BYTES, right_of, 10 + thread, (turn + thread) % 4);
    if (!is_filled(data + 2 * BYTES, BYTES, right_of, thread)) atomic_store(&all_right, 0);
    get(data + 2 * BYTES, left_of, thread, (turn + thread + 1) % 4);
    if (!is_filled(data + 2 * BYTES, BYTES, left_of, thread)) atomic_store(&all_right, 0);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  free(data);
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t made[THREADS];
  int numbers[THREADS];
  begin(&argc, &argv, MPI_THREAD_MULTIPLE);
  pthread_barrier_init(&all_posted, NULL, THREADS + 1);
  stopped();
  for (int t = 0; t < THREADS; ++t) numbers[t] = t, pthread_create(&made[t], NULL, talk, &numbers[t]);
  pthread_barrier_wait(&all_posted);
  posted();
  for (int t = 0; t < THREADS; ++t) pthread_join(made[t], NULL);
  expect(all_right, "threads");
  end("threads");
  return finish();
}
