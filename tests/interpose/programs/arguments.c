/* SPDX-License-Identifier: BSD-3-Clause
 * Wrong arguments get the native library's error class, through the communicator's own error handler. */
#include "check.h"

static int handler_calls;
static void handler(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  ++handler_calls;
}

static void show(const char* what, int code) {
  int rank, class = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Error_class(code, &class);
  if (rank == 0) printf("%s: class %d, handler calls %d\n", what, class, handler_calls);
  handler_calls = 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Errhandler errors;
  MPI_Comm_create_errhandler(handler, &errors);
  MPI_Comm_set_errhandler(comm, errors);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, errors);
  int send[64] = {0}, recv[64] = {0}, counts[64], displs[64];
  for (int i = 0; i < 64; ++i) counts[i] = 1, displs[i] = i;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Datatype uncommitted;
  MPI_Type_contiguous(2, MPI_INT, &uncommitted);
  show("count", MPI_Ialltoall(send, -1, MPI_INT, recv, -1, MPI_INT, comm, &request));
  show("null type", MPI_Ialltoall(send, 1, MPI_DATATYPE_NULL, recv, 1, MPI_DATATYPE_NULL, comm, &request));
  show("uncommitted type", MPI_Ialltoall(send, 1, uncommitted, recv, 1, uncommitted, comm, &request));
  show("null communicator", MPI_Ialltoall(send, 1, MPI_INT, recv, 1, MPI_INT, MPI_COMM_NULL, &request));
  counts[1] = -3;
  show("negative count in array",
       MPI_Ialltoallv(send, counts, displs, MPI_INT, recv, counts, displs, MPI_INT, comm, &request));
  MPI_Type_free(&uncommitted);
  MPI_Comm_free(&comm);
  MPI_Errhandler_free(&errors);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  return finish();
}
