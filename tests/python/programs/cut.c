/* SPDX-License-Identifier: BSD-3-Clause
 *
 * 1051 sums, and a second later one more. Then ready: it makes a file argv[1].RANK, and waits for its end, or with "fill"
 * sends messages to itself for as long as the recording may need to fill a small disk. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, value = 1, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 1052; ++i) {
    if (i == 1051) sleep(1);
    MPI_Request request;
    MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (argc > 2 && strcmp(argv[2], "fill") == 0) {
    for (int i = 0; i < 20000; ++i) {
      MPI_Sendrecv(&value, 1, MPI_INT, rank, 1, &sum, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Request request;
      MPI_Irecv(&sum, 1, MPI_INT, rank, 2, MPI_COMM_WORLD, &request);
      MPI_Send(&value, 1, MPI_INT, rank, 2, MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return MPI_Finalize();
  }
  char name[4096];
  snprintf(name, sizeof(name), "%s.%d", argv[1], rank);
  fclose(fopen(name, "w"));
  for (;;) pause();
}
