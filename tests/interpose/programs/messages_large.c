/* SPDX-License-Identifier: BSD-3-Clause
 * Messages by calls of MPI 4, which a program finds at run time: large counts, Isendrecv, partitioned communication, requests
 * that are looked at. Those that are there must work. Every receive is once of a message that nobody has seen, once of one that was probed.
 * With an argument all with large counts must be there, and the others with a library of MPI 4. */
#define _GNU_SOURCE
#include "mpi/native/prototypes.h"
#include "messages.h"

#include <dlfcn.h>

enum { ROUNDS = 3, BYTES = 50000 };
enum { LONG_TAG = 1, WORD_TAG = 2, BACK_TAG = 3 };

static int all_there;
static unsigned char out[BYTES], in[BYTES], back[BYTES];
static MPI_Comm comm;

#define FIND(name) __typeof__(&MPI_##name) name = (__typeof__(&MPI_##name))find("MPI_" #name)

static void* find(const char* name) {
  void* function = dlsym(RTLD_DEFAULT, name);
  if (function == NULL && all_there) report(name, 0);
  return function;
}

/* How a message is received, and what goes out meanwhile: nothing, a word, or what was in the buffer. */
typedef void Receive(MPI_Status* status);
typedef enum { NOTHING, WORD, BUFFER } Beside;

static int ring(Receive* receive, Beside beside, int round, int probed) {
  MPI_Request sent, returned = MPI_REQUEST_NULL;
  MPI_Status status;
  MPI_Count count = -1;
  int ok = 1, word = -1;
  fill(out, BYTES, rank + round);
  memset(in, 99, BYTES);
  memset(back, 0, BYTES);
  if (beside == WORD) MPI_Irecv(&word, 1, MPI_INT, left_of, WORD_TAG, comm, &returned);
  if (beside == BUFFER) MPI_Irecv(back, BYTES, MPI_BYTE, left_of, BACK_TAG, comm, &returned);
  MPI_Isend(out, BYTES, MPI_BYTE, right_of, LONG_TAG, comm, &sent);
  if (probed) {
    MPI_Probe(left_of, LONG_TAG, comm, &status);
    MPI_Get_elements_x(&status, MPI_BYTE, &count);
    ok = ok && count == BYTES;
  }
  receive(&status);
  MPI_Get_elements_x(&status, MPI_BYTE, &count);
  ok = ok && is_filled(in, BYTES, left_of + round) && count == BYTES && status.MPI_SOURCE == left_of &&
       status.MPI_TAG == LONG_TAG;
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  MPI_Wait(&returned, MPI_STATUS_IGNORE);
  if (beside == WORD) ok = ok && word == left_of;
  if (beside == BUFFER) ok = ok && back[0] == 99 && back[BYTES - 1] == 99;
  return ok;
}

static void receives(const char* name, Receive* receive, Beside beside) {
  int ok = 1;
  for (int round = 0; round < ROUNDS; ++round)
    for (int probed = 0; probed < 2; ++probed) ok = ring(receive, beside, round, probed) && ok;
  report(name, ok);
}

#define RECEIVE(function, beside, call)                                \
  static __typeof__(&MPI_##function) function;                         \
  static void by_##function(MPI_Status* status) { call; }              \
  static void try_##function(void) {                                   \
    function = find("MPI_" #function);                                 \
    if (function != NULL) receives(#function, &by_##function, beside); \
  }

static MPI_Request request;
static MPI_Message message;
#define OUT_WORD &rank, 1, MPI_INT, right_of, WORD_TAG
#define FROM left_of, LONG_TAG, comm
#define WAIT MPI_Wait(&request, status)

RECEIVE(Recv_c, NOTHING, Recv_c(in, BYTES, MPI_BYTE, FROM, status))
RECEIVE(Irecv_c, NOTHING, Irecv_c(in, BYTES, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request); WAIT)
RECEIVE(Recv_init_c, NOTHING, Recv_init_c(in, BYTES, MPI_BYTE, MPI_ANY_SOURCE, LONG_TAG, comm, &request);
        MPI_Start(&request); WAIT; MPI_Request_free(&request))
RECEIVE(Mrecv_c, NOTHING, MPI_Mprobe(FROM, &message, status); Mrecv_c(in, BYTES, MPI_BYTE, &message, status))
RECEIVE(Imrecv_c, NOTHING, MPI_Mprobe(FROM, &message, status); Imrecv_c(in, BYTES, MPI_BYTE, &message, &request); WAIT)
RECEIVE(Sendrecv_c, WORD, Sendrecv_c(OUT_WORD, in, BYTES, MPI_BYTE, FROM, status))
RECEIVE(Sendrecv_replace_c, BUFFER, Sendrecv_replace_c(in, BYTES, MPI_BYTE, right_of, BACK_TAG, FROM, status))

/* Sends with large counts; persistent ones are started twice. */
#define SEND(function, repeats, start)                             \
  static void send_##function(void) {                              \
    MPI_Request receive, send = MPI_REQUEST_NULL;                  \
    int ok = 1;                                                    \
    FIND(function);                                                \
    if (function == NULL) return;                                  \
    for (int round = 0; round < ROUNDS; ++round) {                 \
      for (int repeat = 0; repeat < (repeats); ++repeat) {         \
        fill(out, BYTES, rank + round + repeat);                   \
        MPI_Irecv(in, BYTES, MPI_BYTE, FROM, &receive);            \
        MPI_Barrier(comm); /* a ready send must find it */         \
        start;                                                     \
        MPI_Wait(&receive, MPI_STATUS_IGNORE);                     \
        MPI_Wait(&send, MPI_STATUS_IGNORE);                        \
        ok = ok && is_filled(in, BYTES, left_of + round + repeat); \
      }                                                            \
      if (send != MPI_REQUEST_NULL) MPI_Request_free(&send);       \
    }                                                              \
    report(#function, ok);                                         \
  }
#define TO right_of, LONG_TAG, comm, &send
SEND(Isend_c, 1, Isend_c(out, BYTES, MPI_BYTE, TO))
SEND(Issend_c, 1, Issend_c(out, BYTES, MPI_BYTE, TO))
SEND(Irsend_c, 1, Irsend_c(out, BYTES, MPI_BYTE, TO))
SEND(Send_init_c, 2, if (repeat == 0) Send_init_c(out, BYTES, MPI_BYTE, TO); MPI_Start(&send))
SEND(Ssend_init_c, 2, if (repeat == 0) Ssend_init_c(out, BYTES, MPI_BYTE, TO); MPI_Startall(1, &send))

#ifdef OFFPATH_MPI_HAS_LARGE_COUNTS
RECEIVE(Isendrecv, WORD, Isendrecv(OUT_WORD, in, BYTES, MPI_BYTE, FROM, &request); WAIT)
RECEIVE(Isendrecv_c, WORD, Isendrecv_c(OUT_WORD, in, BYTES, MPI_BYTE, FROM, &request); WAIT)
RECEIVE(Isendrecv_replace, BUFFER, Isendrecv_replace(in, BYTES, MPI_BYTE, right_of, BACK_TAG, FROM, &request); WAIT)
RECEIVE(Isendrecv_replace_c, BUFFER, Isendrecv_replace_c(in, BYTES, MPI_BYTE, right_of, BACK_TAG, FROM, &request); WAIT)

/* Beside a long message of the same tag: neither is taken for the other. */
static void partitioned(void) {
  enum { PARTS = 4 };
  static unsigned char from[BYTES], to[BYTES];
  MPI_Request parts[2], others[2];
  int ok = 1;
  MPI_Psend_init(from, PARTS, BYTES / PARTS, MPI_BYTE, right_of, LONG_TAG, comm, MPI_INFO_NULL, &parts[0]);
  MPI_Precv_init(to, PARTS, BYTES / PARTS, MPI_BYTE, left_of, LONG_TAG, comm, MPI_INFO_NULL, &parts[1]);
  for (int round = 0; round < ROUNDS; ++round) {
    fill(from, BYTES, rank + round), fill(out, BYTES, rank + round + 7);
    memset(to, 0, BYTES), memset(in, 0, BYTES);
    MPI_Startall(2, parts);
    MPI_Isend(out, BYTES, MPI_BYTE, right_of, LONG_TAG, comm, &others[0]);
    for (int i = PARTS - 1; i >= 0; --i) MPI_Pready(i, parts[0]);
    MPI_Irecv(in, BYTES, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &others[1]);
    for (int i = 0; i < PARTS; ++i)
      for (int there = 0; !there;) MPI_Parrived(parts[1], i, &there);
    ok = ok && is_filled(to, BYTES, left_of + round);
    MPI_Waitall(2, others, MPI_STATUSES_IGNORE);
    MPI_Waitall(2, parts, MPI_STATUSES_IGNORE);
    ok = ok && is_filled(in, BYTES, left_of + round + 7);
  }
  MPI_Request_free(&parts[0]), MPI_Request_free(&parts[1]);
  report("partitioned", ok);
}
#endif

#ifdef OFFPATH_MPI_HAS_REQUEST_STATUSES
static int shows(const MPI_Status* status, int tag) {
  int count = -1;
  MPI_Get_count(status, MPI_BYTE, &count);
  return count == BYTES && status->MPI_SOURCE == left_of && status->MPI_TAG == tag;
}

/* One long message is there, and one cannot be yet; then both; then there is nothing. What is looked at stays. */
static void looked_at(void) {
  MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL}, sent[2];
  MPI_Status statuses[3];
  int ok = 1, done = 0, index = -1, count = -1, indices[3];
  memset(in, 99, BYTES), memset(back, 0, BYTES);
  fill(out, BYTES, rank);
  MPI_Irecv(in, BYTES, MPI_BYTE, left_of, LONG_TAG, comm, &requests[1]);
  MPI_Irecv(back, BYTES, MPI_BYTE, left_of, BACK_TAG, comm, &requests[2]);
  MPI_Request_get_status_any(3, requests, &index, &done, statuses);
  ok = ok && (!done || index == 1);
  MPI_Request_get_status_some(3, requests, &count, indices, statuses);
  ok = ok && (count == 0 || count == 1);
  MPI_Isend(out, BYTES, MPI_BYTE, right_of, LONG_TAG, comm, &sent[0]);
  for (done = 0; !done;) MPI_Request_get_status_any(3, requests, &index, &done, statuses);
  ok = ok && index == 1 && shows(&statuses[0], LONG_TAG) && is_filled(in, BYTES, left_of);
  MPI_Request_get_status_some(3, requests, &count, indices, statuses);
  ok = ok && count == 1 && indices[0] == 1 && shows(&statuses[0], LONG_TAG);
  MPI_Request_get_status_all(3, requests, &done, statuses);
  ok = ok && !done;
  MPI_Barrier(comm);
  MPI_Isend(out, BYTES, MPI_BYTE, right_of, BACK_TAG, comm, &sent[1]);
  for (done = 0; !done;) MPI_Request_get_status_all(3, requests, &done, statuses);
  ok = ok && shows(&statuses[1], LONG_TAG) && shows(&statuses[2], BACK_TAG) && is_filled(back, BYTES, left_of);
  MPI_Request_get_status_some(3, requests, &count, indices, MPI_STATUSES_IGNORE);
  ok = ok && count == 2 && indices[0] + indices[1] == 3;
  MPI_Waitall(3, requests, statuses);
  ok = ok && shows(&statuses[1], LONG_TAG) && shows(&statuses[2], BACK_TAG);
  MPI_Waitall(2, sent, MPI_STATUSES_IGNORE);
  MPI_Request_get_status_any(3, requests, &index, &done, MPI_STATUS_IGNORE);
  ok = ok && done && index == MPI_UNDEFINED;
  MPI_Request_get_status_some(3, requests, &count, indices, MPI_STATUSES_IGNORE);
  MPI_Request_get_status_all(3, requests, &done, MPI_STATUSES_IGNORE);
  report("looked at", ok && done && count == MPI_UNDEFINED);
}
#endif

int main(int argc, char** argv) {
  enter(&argc, &argv);
  all_there = argc > 1;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  try_Recv_c(), try_Irecv_c(), try_Recv_init_c(), try_Mrecv_c(), try_Imrecv_c(), try_Sendrecv_c();
  try_Sendrecv_replace_c();
  send_Isend_c(), send_Issend_c(), send_Irsend_c(), send_Send_init_c(), send_Ssend_init_c();
#ifdef OFFPATH_MPI_HAS_LARGE_COUNTS
  try_Isendrecv(), try_Isendrecv_c(), try_Isendrecv_replace(), try_Isendrecv_replace_c();
  partitioned();
#endif
#ifdef OFFPATH_MPI_HAS_REQUEST_STATUSES
  looked_at();
#endif
  MPI_Comm_free(&comm);
  return finish();
}
