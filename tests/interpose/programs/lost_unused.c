/* SPDX-License-Identifier: BSD-3-Clause
 * The first call on a communicator is lost with the service, while the last rank, which has no part in it, blocks in another call
 * and makes it only when the others have ended it. Argument: a folder, for "posted" and "killed". */
#include "world.h"

enum { COUNT = 5000, TAG = 1 };

int main(int argc, char** argv) {
  int wrong = 0, word = 0;
  MPI_Comm used, made;
  MPI_Request request;
  enter(&argc, &argv);
  folder = argv[1];
  MPI_Comm_dup(MPI_COMM_WORLD, &used);
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  const int last = size - 1;
  int* send = calloc((size_t)(COUNT * size), sizeof(int));
  int* recv = calloc((size_t)(COUNT * size), sizeof(int));
  int* counts = calloc((size_t)size, sizeof(int));
  int* places = calloc((size_t)size, sizeof(int));
  for (int r = 0; r < size; ++r) {
    counts[r] = rank == last || r == last ? 0 : COUNT;
    places[r] = r * COUNT;
    for (int i = 0; i < COUNT; ++i) send[places[r] + i] = value_of(rank, r, i, 0);
  }
  MPI_Ialltoall(send, 1, MPI_INT, recv, 1, MPI_INT, used, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    leave_mark("ready");
    stay_out_until("go");
  }
  MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == last) MPI_Recv(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Ialltoallv(send, counts, places, MPI_INT, recv, counts, places, MPI_INT, made, &request);
  if (rank == 0) {
    leave_mark("posted");
    stay_out_until("killed");
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 0) MPI_Send(&word, 1, MPI_INT, last, TAG, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r)
    for (int i = 0; i < counts[r]; ++i) wrong += recv[places[r] + i] != value_of(r, rank, i, 0);
  report("without a part", wrong == 0);
  MPI_Comm_free(&used);
  MPI_Comm_free(&made);
  return finish();
}
