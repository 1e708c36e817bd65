/* SPDX-License-Identifier: BSD-3-Clause
 * Two ranks and long alltoalls. The second rank posts its third one only when the file argv[1] is there; both go on
 * until the file argv[2] is. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

enum { BYTES = 1 << 18 };
static char from[2 * BYTES], to[2 * BYTES];

static void exchange(void) {
  MPI_Request request;
  MPI_Ialltoall(from, BYTES, MPI_CHAR, to, BYTES, MPI_CHAR, MPI_COMM_WORLD, &request);
  usleep(2000);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  int rank, ended = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; !ended; ++i) {
    while (i == 2 && rank == 1 && access(argv[1], F_OK) != 0) usleep(1000);
    exchange();
    ended = access(argv[2], F_OK) == 0;
    MPI_Allreduce(MPI_IN_PLACE, &ended, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
