/* SPDX-License-Identifier: BSD-3-Clause
 * Errors of point-to-point calls. Wrong arguments get the library's error class through the handler of the same communicator as
 * natively, and what follows a message that did not fit is as if that had not been. Natively it prints the same. */
#include "world.h"

enum { BYTES = 100000, LENGTH = 5000 };

static int other, on_comm, on_world;
static MPI_Comm comm;
static char out[BYTES], in[BYTES];

static void count(MPI_Comm* where, int* code, ...) {
  (void)code;
  ++*(*where == comm ? &on_comm : &on_world);
}

/* ---- one wrong argument at a time */

typedef struct Wrong {
  const char* name;
  int count, peer, tag, no_request;
  MPI_Datatype type;
  MPI_Comm comm;
} Wrong;

enum {
  ISEND,
  ISSEND,
  IRSEND,
  SEND_INIT,
  SSEND_INIT,
  IRECV,
  RECV_INIT,
  RECV,
  SENDRECV,
  REPLACE,
  IPROBE,
  IMPROBE,
  CALLS
};
static const char* const names[] = {"Isend",     "Issend", "Irsend",   "Send_init",        "Ssend_init", "Irecv",
                                    "Recv_init", "Recv",   "Sendrecv", "Sendrecv_replace", "Iprobe",     "Improbe"};

static int call(int which, const Wrong* w, MPI_Request* request) {
  MPI_Message message;
  int flag;
  switch (which) {
    case ISEND:
      return MPI_Isend(out, w->count, w->type, w->peer, w->tag, w->comm, request);
    case ISSEND:
      return MPI_Issend(out, w->count, w->type, w->peer, w->tag, w->comm, request);
    case IRSEND:
      return MPI_Irsend(out, w->count, w->type, w->peer, w->tag, w->comm, request);
    case SEND_INIT:
      return MPI_Send_init(out, w->count, w->type, w->peer, w->tag, w->comm, request);
    case SSEND_INIT:
      return MPI_Ssend_init(out, w->count, w->type, w->peer, w->tag, w->comm, request);
    case IRECV:
      return MPI_Irecv(in, w->count, w->type, w->peer, w->tag, w->comm, request);
    case RECV_INIT:
      return MPI_Recv_init(in, w->count, w->type, w->peer, w->tag, w->comm, request);
    case RECV:
      return MPI_Recv(in, w->count, w->type, w->peer, w->tag, w->comm, MPI_STATUS_IGNORE);
    case SENDRECV:
      return MPI_Sendrecv(out, 1, MPI_BYTE, MPI_PROC_NULL, 0, in, w->count, w->type, w->peer, w->tag, w->comm,
                          MPI_STATUS_IGNORE);
    case REPLACE:
      return MPI_Sendrecv_replace(in, w->count, w->type, MPI_PROC_NULL, 0, w->peer, w->tag, w->comm, MPI_STATUS_IGNORE);
    case IPROBE:
      return MPI_Iprobe(w->peer, w->tag, w->comm, &flag, MPI_STATUS_IGNORE);
    default:
      return MPI_Improbe(w->peer, w->tag, w->comm, &flag, &message, MPI_STATUS_IGNORE);
  }
}

static void try_all(const Wrong* wrong, int from, int to) {
  for (int which = from; which < to; ++which) {
    MPI_Request request = MPI_REQUEST_NULL;
    on_comm = on_world = 0;
    const int code = call(which, wrong, wrong->no_request ? NULL : &request);
    if (rank == 0)
      printf("%s, %s: %s, handlers called: %d and %d\n", names[which], wrong->name, class_name(code), on_comm,
             on_world);
  }
}

static void wrong_arguments(void) {
  const Wrong right = {"", BYTES, other, 1, 0, MPI_BYTE, comm};
  Wrong w = right;
  MPI_Datatype uncommitted;
  w.name = "negative count", w.count = -1;
  try_all(&w, 0, IPROBE);
  w = right, w.name = "null type", w.type = MPI_DATATYPE_NULL;
  try_all(&w, 0, IPROBE);
  w = right, w.name = "no type at all", memset(&w.type, 0, sizeof(w.type));
  try_all(&w, 0, IPROBE);
  MPI_Type_contiguous(2, MPI_BYTE, &uncommitted);
  w = right, w.name = "uncommitted type", w.count = BYTES / 2, w.type = uncommitted;
  try_all(&w, 0, IPROBE);
  MPI_Type_free(&uncommitted);
  w = right, w.name = "rank too high", w.peer = 1000;
  try_all(&w, 0, CALLS);
  w = right, w.name = "negative tag", w.tag = -77;
  try_all(&w, 0, CALLS);
  w = right, w.name = "null communicator", w.comm = MPI_COMM_NULL;
  try_all(&w, 0, IPROBE); /* Open MPI's probes do not survive it */
  w = right, w.name = "no request", w.no_request = 1;
  try_all(&w, 0, RECV);
}

/* ---- messages that do not fit */

static int is_right(const char* data) {
  for (int i = 0; i < LENGTH; ++i)
    if (data[i] != (char)(i * 7 + 1)) return 0;
  return 1;
}

enum { WAIT, WAITALL, WAITANY, WAITSOME, TEST, TESTALL, TESTANY, TESTSOME, WAYS };
static int complete(int way, MPI_Request* request) {
  int code = MPI_SUCCESS, flag = 0, index = 0, done = 0;
  MPI_Status status;
  switch (way) {
    case WAIT:
      return MPI_Wait(request, &status);
    case WAITALL:
      return MPI_Waitall(1, request, &status);
    case WAITANY:
      return MPI_Waitany(1, request, &index, &status);
    case WAITSOME:
      return MPI_Waitsome(1, request, &done, &index, &status);
    case TEST:
      while (code == MPI_SUCCESS && !flag) code = MPI_Test(request, &flag, &status);
      return code;
    case TESTALL:
      while (code == MPI_SUCCESS && !flag) code = MPI_Testall(1, request, &flag, &status);
      return code;
    case TESTANY:
      while (code == MPI_SUCCESS && !flag) code = MPI_Testany(1, request, &index, &flag, &status);
      return code;
    default:
      while (code == MPI_SUCCESS && done == 0) code = MPI_Testsome(1, request, &done, &index, &status);
      return code;
  }
}

/* A persistent receive: too little room once, and then all of it. Its memory is the same. */
static void started_again(int way) {
  MPI_Request again, sent[2];
  int ok = 1;
  memset(in, 0, sizeof(in));
  MPI_Recv_init(in, LENGTH, MPI_BYTE, other, 2, comm, &again);
  MPI_Isend(out, LENGTH + 1, MPI_BYTE, other, 2, comm, &sent[0]);
  MPI_Start(&again);
  ok = complete(way, &again) != MPI_SUCCESS && again != MPI_REQUEST_NULL;
  MPI_Isend(out, LENGTH, MPI_BYTE, other, 2, comm, &sent[1]);
  memset(in, 0, sizeof(in));
  MPI_Start(&again);
  ok = complete(way, &again) == MPI_SUCCESS && is_right(in) && ok;
  MPI_Waitall(2, sent, MPI_STATUSES_IGNORE);
  MPI_Request_free(&again);
  report("started again", ok);
}

/* The same where the room is less than what is sent in place of the message. */
static void short_room(int way) {
  static char little[200];
  MPI_Request again, sent[2];
  int ok = 1, word = 1;
  MPI_Recv_init(little, sizeof(little), MPI_BYTE, other, 3, comm, &again);
  MPI_Isend(out, LENGTH, MPI_BYTE, other, 3, comm, &sent[0]);
  MPI_Start(&again);
  ok = complete(way, &again) != MPI_SUCCESS;
  MPI_Isend(out, 100, MPI_BYTE, other, 3, comm, &sent[1]);
  MPI_Start(&again);
  ok = complete(way, &again) == MPI_SUCCESS && memcmp(little, out, 100) == 0 && ok;
  MPI_Waitall(2, sent, MPI_STATUSES_IGNORE);
  MPI_Request_free(&again);
  MPI_Sendrecv_replace(&word, 1, MPI_INT, other, 4, other, 4, comm, MPI_STATUS_IGNORE);
  report("short room", ok);
}

/* One that a probe has seen is an error of the communicator that it came on, as any other. */
static void short_after_probe(int way) {
  static char little[200];
  MPI_Request received, sent;
  MPI_Isend(out, LENGTH, MPI_BYTE, other, 5, comm, &sent);
  MPI_Probe(other, 5, comm, MPI_STATUS_IGNORE);
  on_comm = on_world = 0;
  MPI_Irecv(little, sizeof(little), MPI_BYTE, other, 5, comm, &received);
  const int code = complete(way, &received);
  if (rank == 0)
    printf("probed, way %d: %s, handlers called: %d and %d\n", way, class_name(code), on_comm > 0, on_world > 0);
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  MPI_Errhandler errors;
  other = 1 - rank;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(count, &errors);
  MPI_Comm_set_errhandler(comm, errors);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, errors);
  for (int i = 0; i < BYTES; ++i) out[i] = (char)(i * 7 + 1);
  wrong_arguments();
#ifndef OPEN_MPI /* which frees a persistent request that has failed */
  for (int way = 0; way < WAYS; ++way) started_again(way);
  for (int way = 0; way < WAYS; ++way) short_room(way);
#endif
  for (int way = 0; way < WAYS; ++way) short_after_probe(way);
  MPI_Barrier(comm);
  MPI_Comm_free(&comm);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&errors);
  return finish();
}
