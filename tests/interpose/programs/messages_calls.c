/* SPDX-License-Identifier: BSD-3-Clause
 * All calls that send, receive, probe and complete messages, between two ranks or more. Natively it prints the same. */
#include "messages.h"

enum { ROUNDS = 4, BYTES = 150000, SHORT = 500, MANY = 8, EACH = BYTES / MANY };

static unsigned char *out, *in;
static MPI_Comm comm;

/* Of message k of MANY; every third is short. */
static int length_of(int k) { return k % 3 == 2 ? SHORT : EACH - 100 * k; }
static void start(MPI_Request* requests, int round) {
  memset(in, 0, BYTES);
  for (int k = 0; k < MANY; ++k) {
    MPI_Irecv(in + k * EACH, EACH, MPI_BYTE, left_of, k, comm, &requests[2 * k]);
    fill(out + k * EACH, length_of(k), rank + k + round);
  }
  for (int k = 0; k < MANY; ++k)
    MPI_Isend(out + k * EACH, length_of(k), MPI_BYTE, right_of, k, comm, &requests[2 * k + 1]);
}
static int has_come(int k, int round, const MPI_Status* status) {
  return is_filled(in + k * EACH, length_of(k), left_of + k + round) && says(status, left_of, k, length_of(k));
}

static int wait_any(int round) {
  MPI_Request requests[2 * MANY + 1];
  int ok = 1, index;
  MPI_Status status;
  requests[2 * MANY] = MPI_REQUEST_NULL;
  start(requests, round);
  for (int n = 0; n < 2 * MANY; ++n) {
    MPI_Waitany(2 * MANY + 1, requests, &index, &status);
    ok = ok && index >= 0 && index < 2 * MANY && requests[index] == MPI_REQUEST_NULL;
    if (index % 2 == 0) ok = ok && has_come(index / 2, round, &status);
  }
  MPI_Waitany(2 * MANY + 1, requests, &index, &status);
  return ok && index == MPI_UNDEFINED;
}

static int test_any(int round) {
  MPI_Request requests[2 * MANY];
  int ok = 1, index, done = 0;
  MPI_Status status;
  start(requests, round);
  for (int n = 0; n < 2 * MANY; n += done) {
    MPI_Testany(2 * MANY, requests, &index, &done, &status);
    if (done && index == MPI_UNDEFINED) return 0;
    if (done && index % 2 == 0) ok = ok && has_come(index / 2, round, &status);
  }
  MPI_Testany(2 * MANY, requests, &index, &done, &status);
  return ok && done && index == MPI_UNDEFINED;
}

static int some(int round) {
  MPI_Request requests[2 * MANY];
  MPI_Status statuses[2 * MANY];
  int ok = 1, count, indices[2 * MANY];
  start(requests, round);
  for (int n = 0; n < 2 * MANY; n += count) {
    (round % 2 ? MPI_Waitsome : MPI_Testsome)(2 * MANY, requests, &count, indices, statuses);
    if (count == MPI_UNDEFINED) return 0;
    for (int i = 0; i < count; ++i)
      if (indices[i] % 2 == 0) ok = ok && has_come(indices[i] / 2, round, &statuses[i]);
  }
  MPI_Waitsome(2 * MANY, requests, &count, indices, MPI_STATUSES_IGNORE);
  return ok && count == MPI_UNDEFINED;
}

static int test_all(int round) {
  MPI_Request requests[2 * MANY];
  MPI_Status statuses[2 * MANY];
  int ok = 1, done = 0;
  start(requests, round);
  while (!done) MPI_Testall(2 * MANY, requests, &done, statuses);
  for (int k = 0; k < MANY; ++k) ok = ok && has_come(k, round, &statuses[2 * k]);
  return ok;
}

/* What is complete has come, though nobody has completed it: where its status is asked for, and where not. */
static int get_status(int round) {
  MPI_Request requests[2 * MANY];
  int ok = 1;
  start(requests, round);
  for (int i = 0; i < 2 * MANY; ++i) {
    MPI_Status status, again;
    for (int done = 0; !done;) MPI_Request_get_status(requests[i], &done, i % 3 ? &status : MPI_STATUS_IGNORE);
    if (i % 2 == 0) ok = ok && is_filled(in + i / 2 * EACH, length_of(i / 2), left_of + i / 2 + round);
    if (i % 2 == 0 && i % 3) ok = ok && says(&status, left_of, i / 2, length_of(i / 2));
    MPI_Wait(&requests[i], &again);
    if (i % 2 == 0) ok = ok && has_come(i / 2, round, &again);
  }
  return ok;
}

/* The receiver hears of it by another message. */
static int freed(int round) {
  MPI_Request receive, send;
  int word = 1, ok = 0;
  volatile unsigned char* last = in + EACH - 1;
  memset(in, 0, EACH);
  fill(out, EACH, rank + round);
  out[EACH - 1] = 99;
  MPI_Irecv(in, EACH, MPI_BYTE, left_of, 0, comm, &receive);
  MPI_Request_free(&receive);
  MPI_Barrier(comm);
  MPI_Isend(out, EACH, MPI_BYTE, right_of, 0, comm, &send);
  if (round % 2)
    MPI_Request_free(&send);
  else
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  while (*last != 99) { /* MPI has to be called for it to come */
    MPI_Request none = MPI_REQUEST_NULL;
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, 4711, comm, &flag, MPI_STATUS_IGNORE);
    MPI_Wait(&none, MPI_STATUS_IGNORE);
  }
  ok = is_filled(in, EACH - 1, left_of + round);
  MPI_Sendrecv_replace(&word, 1, MPI_INT, right_of, 1, left_of, 1, comm, MPI_STATUS_IGNORE);
  MPI_Barrier(comm);
  return ok;
}

static int persistent(int round) {
  static MPI_Request requests[2 * MANY];
  MPI_Status statuses[2 * MANY];
  int ok = 1;
  if (round == 0) {
    for (int k = 0; k < MANY; ++k) {
      (k % 2 ? MPI_Ssend_init : MPI_Send_init)(out + k * EACH, length_of(k), MPI_BYTE, right_of, k, comm,
                                               &requests[2 * k + 1]);
      MPI_Recv_init(in + k * EACH, EACH, MPI_BYTE, left_of, k, comm, &requests[2 * k]);
    }
  }
  for (int repeat = 0; repeat < 3; ++repeat) {
    memset(in, 0, BYTES);
    for (int k = 0; k < MANY; ++k) fill(out + k * EACH, length_of(k), rank + k + round + repeat);
    if (repeat == 0) MPI_Startall(2 * MANY, requests);
    for (int i = 0; repeat != 0 && i < 2 * MANY; ++i) MPI_Start(&requests[i]);
    if (repeat == 1) {
      int done = 0;
      while (!done) MPI_Testall(2 * MANY, requests, &done, statuses);
    } else {
      MPI_Waitall(2 * MANY, requests, statuses);
    }
    for (int k = 0; k < MANY; ++k) ok = ok && has_come(k, round + repeat, &statuses[2 * k]);
    for (int i = 0; i < 2 * MANY; ++i) ok = ok && requests[i] != MPI_REQUEST_NULL;
    MPI_Waitall(2 * MANY, requests, statuses); /* inactive ones */
  }
  if (round == ROUNDS - 1)
    for (int i = 0; i < 2 * MANY; ++i) MPI_Request_free(&requests[i]);
  return ok;
}

static int both_ways(int round) {
  MPI_Request send, back;
  unsigned char* const returned = in + BYTES / 2;
  MPI_Status status;
  int ok, small = rank;
  fill(out, EACH, rank + round);
  MPI_Isend(out, EACH, MPI_BYTE, right_of, 1, comm, &send);
  MPI_Sendrecv(&small, 1, MPI_INT, left_of, 2, in, BYTES, MPI_BYTE, left_of, 1, comm, &status);
  ok = is_filled(in, EACH, left_of + round) && says(&status, left_of, 1, EACH);
  MPI_Recv(&small, 1, MPI_INT, right_of, 2, comm, MPI_STATUS_IGNORE);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  MPI_Isend(out, EACH, MPI_BYTE, right_of, 3, comm, &send);
  memset(in, 7, 2 * EACH);
  MPI_Irecv(returned, EACH, MPI_BYTE, right_of, 4, comm, &back);
  MPI_Sendrecv_replace(in, EACH, MPI_BYTE, left_of, 4, left_of, 3, comm, &status);
  ok = ok && small == right_of && is_filled(in, EACH, left_of + round) && says(&status, left_of, 3, EACH);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  MPI_Wait(&back, MPI_STATUS_IGNORE);
  return ok && returned[0] == 7 && returned[EACH - 1] == 7;
}

/* Tags 1, 2, 3 from the left in that order; 1 and 3 are long, 2 has a ticket's length and is none. */
static void send_three(MPI_Request* sends, int round) {
  fill(out, BYTES, rank + round);
  MPI_Isend(out, EACH, MPI_BYTE, right_of, 1, comm, &sends[0]);
  MPI_Isend(out, 1024, MPI_BYTE, right_of, 2, comm, &sends[1]);
  MPI_Isend(out, 2 * EACH, MPI_BYTE, right_of, 3, comm, &sends[2]);
}
static const int kLengths[] = {0, EACH, 1024, 2 * EACH};

/* So that what the next call does not set is not zero. */
static __attribute__((noinline)) void soil_stack(void) {
  volatile char bytes[8192];
  for (size_t i = 0; i < sizeof(bytes); ++i) bytes[i] = -1;
}

static int probed_short(int round) {
  MPI_Request request;
  MPI_Status status;
  int flag;
  MPI_Isend(&round, 1, MPI_INT, right_of, 1, comm, &request);
  memset(&status, 0, sizeof(status));
  soil_stack();
  MPI_Probe(left_of, 1, comm, &status);
  MPI_Test_cancelled(&status, &flag);
  MPI_Recv(in, 1, MPI_INT, left_of, 1, comm, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return !flag && says(&status, left_of, 1, (int)sizeof(int));
}

static int probes(int round) {
  MPI_Request sends[3], receive;
  MPI_Status status;
  int ok = 1, flag = 0;
  send_three(sends, round);
  /* The last one first, without taking it; then all in order, by different calls. */
  status.MPI_ERROR = MPI_SUCCESS; /* never anything else where one is completed or shown */
  MPI_Probe(left_of, 3, comm, &status);
  ok = ok && says(&status, left_of, 3, 2 * EACH) && status.MPI_ERROR == MPI_SUCCESS;
  for (int tag = 1; tag <= 3; ++tag) {
    flag = 0;
    while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &status);
    ok = ok && says(&status, left_of, tag, kLengths[tag]) && (tag > 1 || status.MPI_ERROR == MPI_SUCCESS);
    memset(in, 0, BYTES);
    if (tag == 2) {
      MPI_Irecv(in, BYTES, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &receive);
      MPI_Wait(&receive, &status);
    } else {
      MPI_Recv(in, kLengths[tag], MPI_BYTE, status.MPI_SOURCE, MPI_ANY_TAG, comm, &status);
    }
    ok = ok && says(&status, left_of, tag, kLengths[tag]) && is_filled(in, kLengths[tag], left_of + round);
  }
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &status);
  MPI_Waitall(3, sends, MPI_STATUSES_IGNORE);
  MPI_Barrier(comm);
  return ok && !flag;
}

static int matched_probes(int round) {
  MPI_Request sends[3], receive;
  MPI_Message messages[4];
  MPI_Status status;
  int ok = 1;
  send_three(sends, round);
  for (int tag = 3; tag >= 1; --tag) {
    int flag = 0;
    if (tag == 2)
      MPI_Mprobe(MPI_ANY_SOURCE, tag, comm, &messages[tag], &status);
    else
      while (!flag) MPI_Improbe(left_of, tag, comm, &flag, &messages[tag], &status);
    ok = ok && says(&status, left_of, tag, kLengths[tag]);
  }
  for (int tag = 1; tag <= 3; ++tag) {
    memset(in, 0, BYTES);
    if (tag == 3) {
      MPI_Imrecv(in, kLengths[tag], MPI_BYTE, &messages[tag], &receive);
      for (int done = 0; !done;) MPI_Test(&receive, &done, &status);
    } else {
      MPI_Mrecv(in, kLengths[tag], MPI_BYTE, &messages[tag], &status);
    }
    ok = ok && messages[tag] == MPI_MESSAGE_NULL && says(&status, left_of, tag, kLengths[tag]) &&
         is_filled(in, kLengths[tag], left_of + round);
  }
  MPI_Waitall(3, sends, MPI_STATUSES_IGNORE);
  return ok;
}

/* What a probe has seen is received by whatever comes next. */
static int probed_otherwise(int round) {
  MPI_Request sends[3], back, send;
  MPI_Status status;
  int ok = 1, small = rank;
  unsigned char* const returned = in + BYTES / 2;
  static MPI_Request again;
  if (round == 0) MPI_Recv_init(in, BYTES, MPI_BYTE, MPI_ANY_SOURCE, 1, comm, &again);
  send_three(sends, round);
  MPI_Probe(MPI_ANY_SOURCE, 3, comm, MPI_STATUS_IGNORE);
  MPI_Start(&again);
  MPI_Waitall(1, &again, &status);
  ok = ok && says(&status, left_of, 1, EACH) && is_filled(in, EACH, left_of + round) && again != MPI_REQUEST_NULL;
  MPI_Isend(&small, 1, MPI_INT, left_of, 9, comm, &send);
  MPI_Sendrecv(&small, 1, MPI_INT, left_of, 10, in, BYTES, MPI_BYTE, left_of, 2, comm, &status);
  ok = ok && says(&status, left_of, 2, 1024) && is_filled(in, 1024, left_of + round);
  MPI_Recv(&small, 1, MPI_INT, right_of, 9, comm, MPI_STATUS_IGNORE);
  MPI_Recv(&small, 1, MPI_INT, right_of, 10, comm, MPI_STATUS_IGNORE);
  memset(in, 5, BYTES);
  MPI_Irecv(returned, BYTES / 2, MPI_BYTE, right_of, 11, comm, &back);
  MPI_Sendrecv_replace(in, 2 * EACH, MPI_BYTE, left_of, 11, left_of, 3, comm, &status);
  ok = ok && says(&status, left_of, 3, 2 * EACH) && is_filled(in, 2 * EACH, left_of + round);
  MPI_Waitall(1, &back, &status);
  ok = ok && says(&status, right_of, 11, 2 * EACH) && returned[0] == 5 && returned[2 * EACH - 1] == 5;
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  MPI_Waitall(3, sends, MPI_STATUSES_IGNORE);
  if (round == ROUNDS - 1) MPI_Request_free(&again);
  return ok;
}

/* Rows of a matrix, and pieces too short for the service: the payload is the same whatever the types. */
static int types(int round) {
  enum { ROWS = 20, ROW = 700, GAP = 900, PIECE = 24 };
  MPI_Datatype rows, pieces;
  MPI_Request send, receive;
  MPI_Status status;
  int ok = 1, count;
  const int bytes = ROWS * ROW;
  MPI_Type_vector(ROWS, ROW, GAP, MPI_BYTE, &rows);
  MPI_Type_create_resized(MPI_BYTE, 0, 1, &pieces);
  MPI_Type_free(&pieces);
  MPI_Type_vector(1, PIECE, PIECE, MPI_BYTE, &pieces);
  MPI_Type_commit(&rows);
  {
    MPI_Datatype piece = pieces;
    MPI_Type_create_resized(piece, 0, PIECE + 8, &pieces);
    MPI_Type_free(&piece);
    MPI_Type_commit(&pieces);
  }
  fill(out, BYTES, rank + round);
  memset(in, 0, BYTES);
  /* Rows to bytes; the datatype is gone before it ends. */
  MPI_Irecv(in, BYTES, MPI_BYTE, left_of, 1, comm, &receive);
  MPI_Isend(out, 1, rows, right_of, 1, comm, &send);
  MPI_Wait(&receive, &status);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  fill(out, BYTES, left_of + round);
  for (int i = 0; i < ROWS; ++i) ok = ok && memcmp(in + i * ROW, out + i * GAP, ROW) == 0;
  ok = ok && says(&status, left_of, 1, bytes);
  /* Bytes to pieces, of which the last is not whole. */
  fill(out, BYTES, rank + round);
  memset(in, 0, BYTES);
  MPI_Irecv(in, 2000, pieces, left_of, 2, comm, &receive);
  MPI_Isend(out, bytes + 5, MPI_BYTE, right_of, 2, comm, &send);
  MPI_Type_free(&pieces);
  MPI_Wait(&receive, &status);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  fill(out, BYTES, left_of + round);
  for (int i = 0; i < bytes + 5; ++i) ok = ok && in[i / PIECE * (PIECE + 8) + i % PIECE] == out[i];
  ok = ok && in[PIECE] == 0 && in[PIECE + 7] == 0;
  MPI_Get_elements(&status, MPI_BYTE, &count);
  ok = ok && count == bytes + 5;
  /* Numbers, which the receiver takes apart, synchronously or not; and pairs. */
  for (int way = 0; way < 6; ++way) {
    enum { NUMBERS = 900 };
    static struct {
      double value;
      int place;
    } pairs[2][NUMBERS];
    const MPI_Datatype basic = way < 2 ? MPI_INT : way < 4 ? MPI_DOUBLE : MPI_DOUBLE_INT;
    const int extent = way < 2 ? 4 : 8;
    MPI_Datatype apart = basic;
    void *from = way < 4 ? (void*)out : (void*)pairs[0], *to = way < 4 ? (void*)in : (void*)pairs[1];
    fill(out, BYTES, rank + round + way);
    memset(in, 0, BYTES);
    for (int i = 0; i < NUMBERS; ++i) pairs[0][i].value = rank + i + round, pairs[0][i].place = i - rank;
    memset(pairs[1], 0, sizeof pairs[1]);
    if (way < 4) MPI_Type_create_resized(basic, 0, 2 * extent, &apart);
    if (way < 4) MPI_Type_commit(&apart);
    MPI_Irecv(to, NUMBERS, apart, left_of, 4 + way, comm, &receive);
    (way % 2 ? MPI_Issend : MPI_Isend)(from, NUMBERS, basic, right_of, 4 + way, comm, &send);
    MPI_Wait(&receive, &status);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    fill(out, BYTES, left_of + round + way);
    for (int i = 0; i < NUMBERS && way < 4; ++i) ok = ok && memcmp(in + 2 * i * extent, out + i * extent, extent) == 0;
    for (int i = 0; i < NUMBERS && way >= 4; ++i)
      ok = ok && pairs[1][i].value == left_of + i + round && pairs[1][i].place == i - left_of;
    if (way < 4) MPI_Type_free(&apart);
  }
  /* Rows to rows, at an absolute address. */
  {
    MPI_Datatype there;
    MPI_Aint address;
    const int one = 1;
    MPI_Get_address(in, &address);
    MPI_Type_create_hindexed(1, &one, &address, rows, &there);
    MPI_Type_commit(&there);
    fill(out, BYTES, rank + round);
    memset(in, 0, BYTES);
    MPI_Irecv(MPI_BOTTOM, 1, there, left_of, 3, comm, &receive);
    MPI_Isend(out, 1, rows, right_of, 3, comm, &send);
    MPI_Type_free(&there);
    MPI_Type_free(&rows);
    MPI_Wait(&receive, &status);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    fill(out, BYTES, left_of + round);
    for (int i = 0; i < ROWS; ++i) ok = ok && memcmp(in + i * GAP, out + i * GAP, ROW) == 0 && in[i * GAP + ROW] == 0;
    ok = ok && says(&status, left_of, 3, bytes);
  }
  return ok;
}

static int truncated(int round) {
  MPI_Request requests[2];
  MPI_Status statuses[2];
  int ok = 1;
  fill(out, EACH, rank + round);
  for (int way = 0; way < 4; ++way) {
    const int room = way == 3 ? 100 : EACH - 1; /* 100: less than a ticket */
    MPI_Request send;
    int code;
    MPI_Isend(out, EACH, MPI_BYTE, right_of, way, comm, &send);
    if (way == 0) {
      ok = ok && ends_with(MPI_Recv(in, room, MPI_BYTE, left_of, way, comm, &statuses[0]), MPI_ERR_TRUNCATE);
    } else if (way == 2) {
      MPI_Irecv(in, room, MPI_BYTE, left_of, way, comm, &requests[0]);
      requests[1] = send;
      code = MPI_Waitall(2, requests, statuses);
      send = requests[1]; /* Open MPI may leave it pending */
      ok = ok && ends_with(code, MPI_ERR_IN_STATUS) && ends_with(statuses[0].MPI_ERROR, MPI_ERR_TRUNCATE);
    } else {
      MPI_Irecv(in, room, MPI_BYTE, left_of, way, comm, &requests[0]);
      ok = ok && ends_with(MPI_Wait(&requests[0], &statuses[0]), MPI_ERR_TRUNCATE) && requests[0] == MPI_REQUEST_NULL;
    }
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(comm);
  return ok;
}

static int cancelled(int round) {
  MPI_Request receive, send;
  MPI_Status status;
  int ok, flag;
  MPI_Irecv(in, BYTES, MPI_BYTE, left_of, 77, comm, &receive);
  MPI_Cancel(&receive);
  MPI_Wait(&receive, &status);
  MPI_Test_cancelled(&status, &flag);
  ok = flag;
  MPI_Barrier(comm);
  fill(out, EACH, rank + round);
  MPI_Irecv(in, BYTES, MPI_BYTE, left_of, 78, comm, &receive);
  MPI_Isend(out, EACH, MPI_BYTE, right_of, 78, comm, &send);
  MPI_Wait(&receive, &status);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  return ok && is_filled(in, EACH, left_of + round) && says(&status, left_of, 78, EACH);
}

/* Nobody, oneself, another communicator that is gone before the end, an intercommunicator. */
static int elsewhere(int round) {
  MPI_Request requests[2];
  MPI_Status status;
  MPI_Comm other, half, inter;
  int ok, flag;
  fill(out, EACH, rank + round);
  MPI_Irecv(in, EACH, MPI_BYTE, MPI_PROC_NULL, 0, comm, &requests[0]);
  MPI_Isend(out, EACH, MPI_BYTE, MPI_PROC_NULL, 0, comm, &requests[1]);
  MPI_Wait(&requests[0], &status);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  ok = requests[0] == MPI_REQUEST_NULL; /* MPICH leaves the status as it is */
  MPI_Iprobe(MPI_PROC_NULL, 0, comm, &flag, &status);
  ok = ok && flag && says(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
  MPI_Irecv(in, EACH, MPI_BYTE, rank, 0, comm, &requests[0]);
  MPI_Isend(out, EACH, MPI_BYTE, rank, 0, comm, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  ok = ok && is_filled(in, EACH, rank + round);
  MPI_Comm_split(comm, 0, -rank, &other); /* ranks the other way round */
  MPI_Irecv(in, EACH, MPI_BYTE, size - 1 - left_of, 0, other, &requests[0]);
  MPI_Isend(out, EACH, MPI_BYTE, size - 1 - right_of, 0, other, &requests[1]);
  MPI_Comm_free(&other);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  ok = ok && is_filled(in, EACH, left_of + round);
  MPI_Comm_split(comm, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, comm, 1 - rank % 2, 5, &inter);
  requests[0] = requests[1] = MPI_REQUEST_NULL;
  if (rank < 2) {
    MPI_Irecv(in, EACH, MPI_BYTE, 0, 0, inter, &requests[0]);
    MPI_Isend(out, EACH, MPI_BYTE, 0, 0, inter, &requests[1]);
  }
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  if (rank < 2) ok = ok && is_filled(in, EACH, 1 - rank + round);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
  return ok;
}

/* What was made with a communicator, or matched on it, goes on when that was freed. The next one may get its handle, and has the
 * ranks the other way round. */
static int freed_comm(int round) {
  MPI_Request sent, received;
  MPI_Comm gone, next;
  int ok = 1;
  MPI_Comm_dup(comm, &gone);
  (round % 2 ? MPI_Ssend_init : MPI_Send_init)(out, EACH, MPI_BYTE, right_of, 1, gone, &sent);
  MPI_Recv_init(in, EACH, MPI_BYTE, left_of, 1, gone, &received);
  MPI_Comm_free(&gone);
  for (int repeat = 0; repeat < 2; ++repeat) {
    MPI_Status status;
    fill(out, EACH, rank + round + repeat);
    memset(in, 0, EACH);
    MPI_Start(&received);
    MPI_Start(&sent);
    MPI_Wait(&received, &status);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    ok = ok && is_filled(in, EACH, left_of + round + repeat) && says(&status, left_of, 1, EACH);
  }
  MPI_Request_free(&sent);
  MPI_Request_free(&received);
  MPI_Comm_split(comm, 0, -rank, &next);
  memset(in, 0, EACH);
  MPI_Irecv(in, EACH, MPI_BYTE, size - 1 - left_of, 0, next, &received);
  MPI_Isend(out, EACH, MPI_BYTE, size - 1 - right_of, 0, next, &sent);
  MPI_Wait(&received, MPI_STATUS_IGNORE);
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  MPI_Comm_free(&next);
  return ok && is_filled(in, EACH, left_of + round + 1);
}

static int freed_after_probe(int round) {
  MPI_Request sent, received;
  MPI_Message message;
  MPI_Status status;
  MPI_Comm gone;
  MPI_Comm_dup(comm, &gone);
  fill(out, EACH, rank + round);
  memset(in, 0, EACH);
  MPI_Isend(out, EACH, MPI_BYTE, right_of, 1, gone, &sent);
  MPI_Mprobe(left_of, 1, gone, &message, &status);
  MPI_Comm_free(&gone);
  if (round % 2) {
    MPI_Imrecv(in, EACH, MPI_BYTE, &message, &received);
    MPI_Wait(&received, &status);
  } else {
    MPI_Mrecv(in, EACH, MPI_BYTE, &message, &status);
  }
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  return is_filled(in, EACH, left_of + round) && says(&status, left_of, 1, EACH);
}

static void section(const char* name, int (*run)(int round)) {
  int ok = 1;
  for (int round = 0; round < ROUNDS; ++round) ok = run(round) && ok;
  report(name, ok);
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* where MPICH reports those of MPI_Wait */
  out = malloc(BYTES);
  in = malloc(BYTES);
  section("wait any", wait_any);
  section("test any", test_any);
  section("some", some);
  section("test all", test_all);
  section("get status", get_status);
  section("freed", freed);
  section("persistent", persistent);
  section("both ways", both_ways);
  section("probed, short", probed_short);
  section("probes", probes);
  section("matched probes", matched_probes);
  section("probed otherwise", probed_otherwise);
  section("types", types);
  section("truncated", truncated);
  section("cancelled", cancelled);
  section("elsewhere", elsewhere);
  section("persistent, communicator freed", freed_comm);
  section("matched, communicator freed", freed_after_probe);
  MPI_Comm_free(&comm);
  return finish();
}
