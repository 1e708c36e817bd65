/* SPDX-License-Identifier: BSD-3-Clause
 * Wrong arguments get the native library's error class, through the communicator's own error handler: every nonblocking
 * collective, one wrong argument at a time. */
#include "check.h"

enum { MEMBERS = 64 };

typedef struct Wrong {
  const char* name;
  int count, root, in_place; /* in_place: 1 sender, 2 receiver */
  MPI_Datatype type;
  MPI_Op op;
  MPI_Comm comm;
} Wrong;

static int handler_calls, size;
static int send[MEMBERS * 4], recv[MEMBERS * 4], counts[MEMBERS], displs[MEMBERS];
static MPI_Aint places[MEMBERS];
static MPI_Datatype types[MEMBERS];

static void handler(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  ++handler_calls;
}

static const char* const names[] = {"ibarrier",
                                    "ibcast",
                                    "igather",
                                    "igatherv",
                                    "iscatter",
                                    "iscatterv",
                                    "iallgather",
                                    "iallgatherv",
                                    "ialltoall",
                                    "ialltoallv",
                                    "ialltoallw",
                                    "ireduce",
                                    "iallreduce",
                                    "ireduce_scatter",
                                    "ireduce_scatter_block",
                                    "iscan",
                                    "iexscan",
                                    "ineighbor_allgather",
                                    "ineighbor_allgatherv",
                                    "ineighbor_alltoall",
                                    "ineighbor_alltoallv",
                                    "ineighbor_alltoallw"};
enum { FUNCTIONS = sizeof(names) / sizeof(names[0]), FIRST_REDUCTION = 11, FIRST_NEIGHBOR = 17 };

static int call(int function, const Wrong* w, MPI_Request* r) {
  const void* s = w->in_place == 1 ? MPI_IN_PLACE : send;
  void* d = w->in_place == 2 ? MPI_IN_PLACE : recv;
  const int n = w->count;
  const MPI_Datatype t = w->type;
  for (int i = 0; i < MEMBERS; ++i) counts[i] = i == 1 ? n : 1, types[i] = t;
  switch (function) {
    case 0:
      return MPI_Ibarrier(w->comm, r);
    case 1:
      return MPI_Ibcast(d, n, t, w->root, w->comm, r);
    case 2:
      return MPI_Igather(s, n, t, d, n, t, w->root, w->comm, r);
    case 3:
      return MPI_Igatherv(s, n, t, d, counts, displs, t, w->root, w->comm, r);
    case 4:
      return MPI_Iscatter(s, n, t, d, n, t, w->root, w->comm, r);
    case 5:
      return MPI_Iscatterv(s, counts, displs, t, d, n, t, w->root, w->comm, r);
    case 6:
      return MPI_Iallgather(s, n, t, d, n, t, w->comm, r);
    case 7:
      return MPI_Iallgatherv(s, n, t, d, counts, displs, t, w->comm, r);
    case 8:
      return MPI_Ialltoall(s, n, t, d, n, t, w->comm, r);
    case 9:
      return MPI_Ialltoallv(s, counts, displs, t, d, counts, displs, t, w->comm, r);
    case 10:
      return MPI_Ialltoallw(s, counts, displs, types, d, counts, displs, types, w->comm, r);
    case 11:
      return MPI_Ireduce(s, d, n, t, w->op, w->root, w->comm, r);
    case 12:
      return MPI_Iallreduce(s, d, n, t, w->op, w->comm, r);
    case 13:
      return MPI_Ireduce_scatter(s, d, counts, t, w->op, w->comm, r);
    case 14:
      return MPI_Ireduce_scatter_block(s, d, n, t, w->op, w->comm, r);
    case 15:
      return MPI_Iscan(s, d, n, t, w->op, w->comm, r);
    case 16:
      return MPI_Iexscan(s, d, n, t, w->op, w->comm, r);
    case 17:
      return MPI_Ineighbor_allgather(s, n, t, d, n, t, w->comm, r);
    case 18:
      return MPI_Ineighbor_allgatherv(s, n, t, d, counts, displs, t, w->comm, r);
    case 19:
      return MPI_Ineighbor_alltoall(s, n, t, d, n, t, w->comm, r);
    case 20:
      return MPI_Ineighbor_alltoallv(s, counts, displs, t, d, counts, displs, t, w->comm, r);
    default:
      return MPI_Ineighbor_alltoallw(s, counts, places, types, d, counts, places, types, w->comm, r);
  }
}

static void try_all(const Wrong* wrong, int from, int to) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int function = from; function < to; ++function) {
    MPI_Request request = MPI_REQUEST_NULL;
    handler_calls = 0;
    const int code = call(function, wrong, &request);
    if (code == MPI_SUCCESS) MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 0)
      printf("%s, %s: %s, handler calls %d\n", names[function], wrong->name, class_name(code), handler_calls);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm comm;
  const int ring = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &ring, 0, &comm);
  MPI_Errhandler errors;
  MPI_Comm_create_errhandler(handler, &errors);
  MPI_Comm_set_errhandler(comm, errors);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, errors);
  for (int i = 0; i < MEMBERS; ++i) displs[i] = 4 * i, places[i] = 4 * i;
  MPI_Datatype uncommitted;
  MPI_Type_contiguous(2, MPI_INT, &uncommitted);
  const Wrong right = {"nothing wrong", 1, 0, 0, MPI_INT, MPI_SUM, comm};
  Wrong w = right;
  try_all(&w, 0, FUNCTIONS);
  w.name = "negative count", w.count = -1;
  try_all(&w, 1, FUNCTIONS);
  w = right, w.name = "null type", w.type = MPI_DATATYPE_NULL;
  try_all(&w, 1, FUNCTIONS);
  w = right, w.name = "uncommitted type", w.type = uncommitted;
  try_all(&w, 1, 4);
  try_all(&w, 6, FUNCTIONS); /* Iscatter, Iscatterv: only some ranks of Open MPI notice */
  w = right, w.name = "null communicator", w.comm = MPI_COMM_NULL;
#ifdef OPEN_MPI /* the others do not survive it */
  try_all(&w, 0, 6);
  try_all(&w, 8, 9);
#else
  try_all(&w, 0, FUNCTIONS);
#endif
  for (int function = 1; function <= FIRST_REDUCTION; ++function) {
    if (function > 5 && function < FIRST_REDUCTION) continue;
    w = right, w.name = "negative root", w.root = -7;
    try_all(&w, function, function + 1);
    w.name = "root too high", w.root = size;
    try_all(&w, function, function + 1);
  }
  w = right, w.name = "null operator", w.op = MPI_OP_NULL;
  try_all(&w, FIRST_REDUCTION, FIRST_NEIGHBOR);
  w = right, w.name = "bits of floating point", w.op = MPI_BAND, w.type = MPI_FLOAT;
  try_all(&w, FIRST_REDUCTION, FIRST_NEIGHBOR);
  w.name = "place of no pair", w.op = MPI_MINLOC, w.type = MPI_INT;
  try_all(&w, FIRST_REDUCTION, FIRST_NEIGHBOR);
  w = right, w.name = "in place at the receiver", w.in_place = 2;
  try_all(&w, 6, FIRST_REDUCTION);
  try_all(&w, FIRST_REDUCTION + 1, FIRST_NEIGHBOR - 1); /* Ireduce: only its root notices; Iexscan: Open MPI does not */
  MPI_Type_free(&uncommitted);
  MPI_Comm_free(&comm);
  MPI_Errhandler_free(&errors);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  return finish();
}
