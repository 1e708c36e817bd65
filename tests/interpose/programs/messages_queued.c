/* SPDX-License-Identifier: BSD-3-Clause
 * More long messages under way than a service has room for, and their sender blocks in another call until all of them have
 * arrived, before it completes any. Argument: a folder. */
#include "blocking_calls.h"
#include "world.h"

enum { MANY = 1500, BYTES = 4000, LONG = 2 << 20 };

static MPI_Request requests[MANY];
static char out[MANY][BYTES], in[BYTES], longest[LONG];

static int receive_all(int call) {
  int wrong = 0;
  for (int i = 0; i < MANY; ++i) {
    MPI_Recv(in, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    wrong += in[0] != (char)(i + call) || in[BYTES - 1] != (char)(i + call);
  }
  return wrong;
}

static void send_all(int call) {
  for (int i = 0; i < MANY; ++i) {
    memset(out[i], i + call, BYTES);
    MPI_Isend(out[i], BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
  }
}

int main(int argc, char** argv) {
  struct Pair pair;
  MPI_Comm comm;
  char name[40];
  enter(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  make_pair(&pair, comm, argv[1], 0);
  for (int i = 0; i < 4; ++i) { /* the receiver gives room as it sees what is sent */
    if (rank == 0) MPI_Isend(longest, LONG, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[0]);
    if (rank == 0) MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Recv(longest, LONG, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (int call = 0; call < BLOCKING_CALLS; ++call) {
    if (rank == 0) send_all(call);
    int wrong = rank == 1 ? receive_all(call) : 0;
    block_in(call, rank == 1, &pair);
    if (rank == 0) MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    snprintf(name, sizeof(name), "queued, call %d", call);
    report(name, wrong == 0);
  }
  free_pair(&pair);
  int wrong = 0;
  if (rank == 0) send_all(0);
  for (int i = 0; rank == 0 && i < MANY; ++i) MPI_Request_free(&requests[i]);
  if (rank == 1) wrong = receive_all(0);
  if (wrong != 0) fprintf(stderr, "queued before MPI_Finalize: wrong\n"), ++check_failures;
  return finish();
}
