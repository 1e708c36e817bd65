/* SPDX-License-Identifier: BSD-3-Clause
 * Many communicators at a time, of which only the last is used, and many one after the other. Argument: how many. */
#include "world.h"

enum { COUNT = 1000, MEMBERS = 16, MOST = 1024 };

static int send[COUNT * MEMBERS], recv[COUNT * MEMBERS];
static MPI_Comm comms[MOST];

int main(int argc, char** argv) {
  enter(&argc, &argv);
  const int many = argc > 1 ? atoi(argv[1]) : MOST;
  int ok = 1;
  for (int i = 0; i < many; ++i) ok = MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]) == MPI_SUCCESS && ok;
  report("made", ok);
  for (int i = 0; i < COUNT * size; ++i) send[i] = value_of(rank, i / COUNT, i % COUNT, 0);
  MPI_Request request;
  MPI_Ialltoall(send, COUNT, MPI_INT, recv, COUNT, MPI_INT, comms[many - 1], &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < COUNT * size; ++i) ok = ok && recv[i] == value_of(i / COUNT, rank, i % COUNT, 0);
  report("last", ok);
  for (int i = 0; i < many; ++i) MPI_Comm_free(&comms[i]);
  for (int i = 0; i < many; ++i) {
    MPI_Comm next;
    MPI_Comm_dup(MPI_COMM_WORLD, &next);
    MPI_Comm_free(&next);
  }
  return finish();
}
