/* SPDX-License-Identifier: BSD-3-Clause
 * One thread probes for everything, and receives nothing; another one receives by all calls. What the probe has seen must
 * not be kept from the receives: natively it is not. */
#include "world.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MANY = 400, BYTES = 3000 };

static MPI_Comm comm;
static atomic_int received;
static int wrong;

static void* probe(void* unused) {
  while (!atomic_load(&received)) {
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, MPI_STATUS_IGNORE);
  }
  return unused;
}

static void receive(int k, unsigned char* in, MPI_Request* again) {
  MPI_Request request;
  MPI_Status status;
  int count, word = 7;
  switch (k % 4) {
    case 0:
      MPI_Recv(in, BYTES, MPI_BYTE, left_of, k % 3, comm, &status);
      break;
    case 1:
      MPI_Irecv(in, BYTES, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request);
      MPI_Wait(&request, &status);
      break;
    case 2:
      MPI_Sendrecv(&word, 1, MPI_INT, MPI_PROC_NULL, 0, in, BYTES, MPI_BYTE, left_of, MPI_ANY_TAG, comm, &status);
      break;
    default:
      MPI_Start(again);
      MPI_Wait(again, &status);
  }
  MPI_Get_count(&status, MPI_BYTE, &count);
  wrong += count != BYTES || status.MPI_TAG != k % 3 || in[0] != (unsigned char)k || in[BYTES - 1] != (unsigned char)k;
}

int main(int argc, char** argv) {
  static unsigned char out[MANY][BYTES], in[BYTES];
  static MPI_Request sends[MANY];
  MPI_Request again;
  pthread_t prober;
  const int provided = enter_with(&argc, &argv, MPI_THREAD_MULTIPLE);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Recv_init(in, BYTES, MPI_BYTE, left_of, MPI_ANY_TAG, comm, &again);
  if (provided == MPI_THREAD_MULTIPLE) pthread_create(&prober, NULL, &probe, NULL);
  for (int k = 0; k < MANY; ++k) {
    memset(out[k], k, BYTES);
    MPI_Isend(out[k], BYTES, MPI_BYTE, right_of, k % 3, comm, &sends[k]);
  }
  for (int k = 0; k < MANY; ++k) receive(k, in, &again);
  MPI_Waitall(MANY, sends, MPI_STATUSES_IGNORE);
  atomic_store(&received, 1);
  if (provided == MPI_THREAD_MULTIPLE) pthread_join(prober, NULL);
  MPI_Request_free(&again);
  report("probed by another thread", wrong == 0);
  MPI_Comm_free(&comm);
  return finish();
}
