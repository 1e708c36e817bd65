/* SPDX-License-Identifier: BSD-3-Clause
 * The program's last MPI calls, MPI_Finalize among them, come from a function of atexit that was registered before
 * MPI_Init: it runs after the destructors of all that was loaded since. So does the destructor of a global C++ object.
 */
#include "check.h"

enum { COUNT = 700 };

static MPI_Win window;
static MPI_Comm comm;
static int* memory;

static void exchange(const char* name, int round) {
  int rank, size, ok = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  int* sent = malloc(sizeof(int) * COUNT * size);
  int* got = malloc(sizeof(int) * COUNT * size);
  for (int i = 0; i < COUNT * size; ++i) sent[i] = value_of(rank, i / COUNT, i % COUNT, round), got[i] = -1;
  MPI_Request request;
  MPI_Ialltoall(sent, COUNT, MPI_INT, got, COUNT, MPI_INT, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < COUNT * size; ++i) ok &= got[i] == value_of(i / COUNT, rank, i % COUNT, round);
  MPI_Win_fence(0, window);
  MPI_Put(&round, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  report(name, ok && *memory == round);
  free(sent);
  free(got);
}

static void at_exit(void) {
  exchange("at exit", 2);
  MPI_Win_free(&window);
  MPI_Comm_free(&comm);
  MPI_Finalize();
}

int main(int argc, char** argv) {
  atexit(at_exit);
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Win_allocate(COUNT * sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &memory, &window);
  exchange("before", 1);
  return check_failures == 0 ? 0 : 1;
}
