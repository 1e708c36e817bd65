/* SPDX-License-Identifier: BSD-3-Clause
 * The service is lost with collectives under way, while rank 0 waits for these and each other rank blocks in another call
 * that ends only when rank 0 has waited. Arguments: a folder, and in which call rank 1 blocks (blocking_calls.h); the
 * others in those that follow. Two times the program says that it is ready and waits: before it posts, and rank 0 when the
 * others have. */
#include "blocking_calls.h"
#include "world.h"

enum { OPS = 3, COUNT = 1000, MOST = 16 };

static int failed, wrong;
static MPI_Comm comm;
static int *send[OPS], *recv[OPS];
static MPI_Request requests[OPS];

static void post(int round) {
  for (int k = 0; k < OPS; ++k) {
    for (int i = 0; i < COUNT * size; ++i) {
      send[k][i] = value_of(rank, i / COUNT, i % COUNT, OPS * round + k);
      recv[k][i] = -1;
    }
    if (MPI_Ialltoall(send[k], COUNT, MPI_INT, recv[k], COUNT, MPI_INT, comm, &requests[k]) != MPI_SUCCESS) ++failed;
  }
}

static void wait(int round) {
  for (int k = 0; k < OPS; ++k) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    const int code = MPI_Wait(&requests[k], MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) {
      MPI_Error_string(code, text, &length);
      fprintf(stderr, "rank %d, round %d: %s\n", rank, round, text);
      ++failed;
      continue;
    }
    for (int i = 0; i < COUNT * size; ++i) wrong += recv[k][i] != value_of(i / COUNT, rank, i % COUNT, OPS * round + k);
  }
}

int main(int argc, char** argv) {
  static struct Pair pairs[MOST];
  enter(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const int first = atoi(argv[2]);
  for (int r = 1; r < size; ++r) {
    MPI_Comm made;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 || rank == r ? 0 : MPI_UNDEFINED, rank, &made);
    if (made != MPI_COMM_NULL) make_pair(&pairs[r], made, argv[1], r);
  }
  for (int k = 0; k < OPS; ++k) {
    send[k] = malloc(sizeof(int) * COUNT * (size_t)size);
    recv[k] = malloc(sizeof(int) * COUNT * (size_t)size);
  }
  post(0);
  wait(0);
  MPI_Barrier(MPI_COMM_WORLD);
  let_the_driver_act("LOST_READY", "LOST_GO");
  post(1);
  if (rank == 0) {
    let_the_driver_act("KILL_READY", "KILL_GO");
    const double begin = MPI_Wtime();
    wait(1);
    fprintf(stderr, "waited %.3f s\n", MPI_Wtime() - begin);
    for (int r = 1; r < size; ++r) block_in((first + r - 1) % BLOCKING_CALLS, 1, &pairs[r]);
  } else {
    block_in((first + rank - 1) % BLOCKING_CALLS, 0, &pairs[rank]);
    wait(1);
  }
  report("while blocked", wrong == 0);
  const int failed_before = failed;
  for (int round = 2; round < 5; ++round) post(round), wait(round);
  wrong += failed - failed_before;
  report("later ones", wrong == 0);
  int all;
  MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("failed %d\n", all);
  for (int r = 1; r < size; ++r)
    if (rank == 0 || rank == r) free_pair(&pairs[r]);
  MPI_Comm_free(&comm);
  return finish();
}
