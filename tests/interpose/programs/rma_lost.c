/* SPDX-License-Identifier: BSD-3-Clause
 * What one-sided communication comes to when a service is lost: argument "fence", "lock", "request" or "both" (ways, by
 * OFFPATH_MPI_WINDOWS: each round has an operation of the service, and perhaps native ones). Errors go to the
 * window's handler with a class of Offpath's own, nothing hangs, the rest of MPI works. */
#include "world.h"

enum { ROUNDS = 40, CELLS = 1 << 14 };

static int handler_calls, failed, foreign;
static MPI_Win win;

static void handler(MPI_Win* which, int* code, ...) {
  (void)which;
  (void)code;
  ++handler_calls;
}

static void look(int code) {
  if (code == MPI_SUCCESS) return;
  ++failed;
  foreign += !is_offpaths(code);
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  const char* const way = argc > 1 ? argv[1] : "fence";
  long* memory;
  long* data = calloc(CELLS, sizeof(long));
  MPI_Errhandler errors;
  MPI_Win_allocate(sizeof(long) * CELLS, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_create_errhandler(handler, &errors);
  MPI_Win_set_errhandler(win, errors);
  const int next = (rank + 1) % size;
  int rounds = ROUNDS; /* without its epoch there is nothing to ask for */
  const int both = strcmp(way, "both") == 0, all = both || strcmp(way, "request") == 0;
  if (all && MPI_Win_lock_all(0, win) != MPI_SUCCESS) ++failed, rounds = 0;
  for (int round = 0; round < rounds; ++round) {
    if (round == ROUNDS / 2) let_the_driver_kill();
    if (strcmp(way, "fence") == 0) {
      look(MPI_Win_fence(0, win));
      look(MPI_Put(data, CELLS, MPI_LONG, next, 0, CELLS, MPI_LONG, win));
    } else if (strcmp(way, "lock") == 0) {
      const int code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win);
      look(code);
      if (code != MPI_SUCCESS) continue;
      look(MPI_Accumulate(data, CELLS, MPI_LONG, next, 0, CELLS, MPI_LONG, MPI_SUM, win));
      look(MPI_Win_unlock(next, win));
    } else if (both) {
      long* const got = data + CELLS / 2;
      look(MPI_Put(data, CELLS / 4, MPI_LONG, next, 0, CELLS / 4, MPI_LONG, win));
      look(MPI_Get(got, CELLS / 4, MPI_LONG, next, CELLS / 2, CELLS / 4, MPI_LONG, win));
      look(MPI_Accumulate(data, 16, MPI_LONG, next, CELLS - 16, 16, MPI_LONG, MPI_SUM, win));
      MPI_Request request = MPI_REQUEST_NULL; /* what has a request is the service's */
      look(MPI_Rput(data, 1, MPI_LONG, next, CELLS - 32, 1, MPI_LONG, win, &request));
      look(MPI_Wait(&request, MPI_STATUS_IGNORE));
      look(MPI_Win_flush(next, win));
      if (round % 4 == 0) MPI_Barrier(MPI_COMM_WORLD); /* alternate: the accumulates change their way */
    } else {
      MPI_Request request = MPI_REQUEST_NULL;
      look(MPI_Rget(data, CELLS, MPI_LONG, next, 0, CELLS, MPI_LONG, win, &request));
      look(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
  }
  if (strcmp(way, "fence") == 0) look(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  if (all && rounds > 0) look(MPI_Win_unlock_all(win));
  report("after the loss", foreign == 0 && handler_calls >= failed);
  int lost = failed > 0, any = 0;
  MPI_Allreduce(&lost, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) printf("errors: %s\n", any ? "some" : "none");
  MPI_Win_free(&win);
  MPI_Errhandler_free(&errors);
  free(data);
  return finish();
}
