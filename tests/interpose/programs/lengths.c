/* SPDX-License-Identifier: BSD-3-Clause
 * Broadcasts for which the root states another length than the others. Arguments: the root's and the others', in bytes,
 * in pairs. Prints what became of each on this rank. */
#include "check.h"

#include <stdlib.h>

static const char* name_of(int code) {
  int class = MPI_SUCCESS;
  MPI_Error_class(code, &class);
  return class == MPI_SUCCESS        ? "success"
         : class == MPI_ERR_TRUNCATE ? "truncated"
         : class == MPI_ERR_OTHER    ? "other"
                                     : "?";
}

static void broadcast(int rank, int sent, int expected, int blocking) {
  const int own = rank == 0 ? sent : expected;
  char* data = malloc((size_t)own + 1);
  memset(data, rank == 0 ? 7 : 1, (size_t)own + 1);
  MPI_Request request;
  int code = blocking ? MPI_Bcast(data, own, MPI_CHAR, 0, MPI_COMM_WORLD)
                      : MPI_Ibcast(data, own, MPI_CHAR, 0, MPI_COMM_WORLD, &request);
  if (!blocking && code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  int intact = data[own] == (rank == 0 ? 7 : 1);
  /* What came is the beginning of what was sent. */
  for (int i = 0; i < own && code == MPI_SUCCESS; ++i) intact = intact && data[i] == (i < sent ? 7 : 1);
  printf("rank %d, %d to %d%s: %s%s\n", rank, sent, expected, blocking ? " blocking" : "", name_of(code),
         intact ? "" : ", wrong bytes");
  fflush(stdout);
  free(data);
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 1; i + 1 < argc; i += 2) {
    for (int blocking = 0; blocking < 2; ++blocking) broadcast(rank, atoi(argv[i]), atoi(argv[i + 1]), blocking);
  }
  MPI_Finalize();
  return 0;
}
