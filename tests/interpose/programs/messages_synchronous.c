/* SPDX-License-Identifier: BSD-3-Clause
 * A synchronous send is complete when a receive has matched it. A probe is none, and neither is a matched probe. Last the
 * algorithm that counts on it: nonblocking consensus (sends, a barrier once they are complete, and probes until that is). */
#include "world.h"

enum { BYTES = 40000, ROUNDS = 30, MOST_SENDS = 12, TAGS = 7 };

static int wrong;
static unsigned char out[MOST_SENDS][BYTES], in[BYTES];

/* ---- two ranks */

enum { PROBE, IPROBE, MPROBE, IMPROBE, PROBES };
static const char* const probe_names[] = {"Probe", "Iprobe", "Mprobe", "Improbe"};

static MPI_Message look(int how, int from, int tag) {
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  int flag = 0, bytes = 0;
  if (how == PROBE) MPI_Probe(from, tag, MPI_COMM_WORLD, &status);
  if (how == MPROBE) MPI_Mprobe(from, tag, MPI_COMM_WORLD, &message, &status);
  while (how == IPROBE && !flag) MPI_Iprobe(from, tag, MPI_COMM_WORLD, &flag, &status);
  while (how == IMPROBE && !flag) MPI_Improbe(from, tag, MPI_COMM_WORLD, &flag, &message, &status);
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  if (bytes != BYTES || status.MPI_SOURCE != 0 || status.MPI_TAG != 1) ++wrong;
  return message;
}

enum { RECV, IRECV, SENDRECV, PERSISTENT, IN_PART /* shorter than the message */, RECEIVES };

static void receive(int how, MPI_Message message, int from, int tag) {
  MPI_Request request;
  MPI_Status status;
  int bytes = 0;
  const int room = how == IN_PART ? BYTES / 2 : BYTES;
  memset(in, 0, sizeof(in));
  if (message != MPI_MESSAGE_NULL && how % 2 == 0) {
    MPI_Mrecv(in, room, MPI_BYTE, &message, &status);
  } else if (message != MPI_MESSAGE_NULL) {
    MPI_Imrecv(in, room, MPI_BYTE, &message, &request);
    MPI_Wait(&request, &status);
  } else if (how == IRECV) {
    MPI_Irecv(in, room, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
  } else if (how == SENDRECV) {
    MPI_Sendrecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, in, room, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status);
  } else if (how == PERSISTENT) {
    MPI_Recv_init(in, room, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Wait(&request, &status);
    MPI_Request_free(&request);
  } else {
    MPI_Recv(in, room, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status);
  }
  if (how == IN_PART) return;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  if (bytes != BYTES || memcmp(in, out[0], BYTES) != 0) ++wrong;
}

/* Words between the two, each of which both are inside MPI for: what is on its way arrives. */
static void talk(int other) {
  int word = 0;
  for (int i = 0; i < 20; ++i)
    MPI_Sendrecv_replace(&word, 1, MPI_INT, other, 2, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int is_complete(MPI_Request* request) {
  int flag = 0;
  MPI_Test(request, &flag, MPI_STATUS_IGNORE);
  return flag;
}

static void probed(int probe, int receiving, int persistent) {
  const int from = receiving % 2 ? MPI_ANY_SOURCE : 0, tag = receiving % 3 ? 1 : MPI_ANY_TAG;
  int early = 0, probed_word = 0;
  MPI_Request request;
  if (rank == 0) {
    if (persistent) {
      MPI_Ssend_init(out[0], BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
      MPI_Start(&request);
    } else {
      MPI_Issend(out[0], BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
    }
    MPI_Recv(&probed_word, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 20; ++i) {
      talk(1);
      early |= is_complete(&request);
    }
    MPI_Send(&early, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (persistent) MPI_Request_free(&request);
    if (early) printf("complete after MPI_%s only\n", probe_names[probe]);
  } else if (rank == 1) {
    const MPI_Message message = look(probe, from, tag);
    MPI_Send(&probed_word, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    for (int i = 0; i < 20; ++i) talk(0);
    MPI_Recv(&early, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    receive(receiving, message, from, tag);
  }
  wrong += early;
}

/* Beside one that a probe holds others are seen, as long as the ticket of any: the one that is held stays so. */
static void held_beside(void) {
  enum { FIRST = 1024, LAST = 1152 };
  int early = 0, word = 0;
  MPI_Request request;
  if (rank == 0) {
    MPI_Issend(out[0], BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
    for (int bytes = FIRST; bytes <= LAST; ++bytes) MPI_Send(out[1], bytes, MPI_BYTE, 1, bytes, MPI_COMM_WORLD);
    MPI_Recv(&word, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 20; ++i) {
      talk(1);
      early |= is_complete(&request);
    }
    MPI_Send(&early, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (early) printf("complete after others were probed\n");
  } else if (rank == 1) {
    look(IPROBE, 0, 1);
    for (int bytes = FIRST; bytes <= LAST; ++bytes) MPI_Probe(0, bytes, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&word, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    for (int i = 0; i < 20; ++i) talk(0);
    MPI_Recv(&early, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    receive(RECV, MPI_MESSAGE_NULL, 0, 1);
    for (int bytes = FIRST; bytes <= LAST; ++bytes)
      MPI_Recv(in, bytes, MPI_BYTE, 0, bytes, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  wrong += early;
}

/* One that is received is complete whatever the receiver does next: it waits for a word that comes after. */
static void received(int first_probed) {
  int word = 0;
  MPI_Request requests[3];
  if (rank == 0) {
    for (int i = 0; i < 3; ++i) MPI_Issend(out[0], BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Send(&word, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
    MPI_Waitall(2, &requests[1], MPI_STATUSES_IGNORE);
    MPI_Send(&word, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
  } else if (rank == 1) {
    static unsigned char all[3][BYTES];
    if (first_probed) MPI_Probe(0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(all[0], BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv(&word, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 1; i < 3; ++i) MPI_Irecv(all[i], BYTES, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &requests[i]);
    MPI_Recv(&word, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3; ++i) wrong += memcmp(all[i], out[0], BYTES) != 0;
  }
}

/* ---- nonblocking consensus */

static unsigned state;
static int draw(int below) {
  state = state * 1103515245u + 12345u;
  return (int)(state >> 16) % below;
}

static void consensus(MPI_Comm comm) {
  int sent[64] = {0}, expected = 0, got = 0, turn = 0;
  static int ones[64];
  MPI_Request sends[MOST_SENDS], barrier = MPI_REQUEST_NULL;
  const int count = draw(MOST_SENDS + 1);
  for (int i = 0; i < size; ++i) ones[i] = 1;
  for (int i = 0; i < count; ++i) {
    const int to = draw(size), bytes = 1 + draw(BYTES);
    ++sent[to];
    memset(out[i], rank + bytes, (size_t)bytes);
    MPI_Issend(out[i], bytes, MPI_BYTE, to, bytes % TAGS, comm, &sends[i]);
  }
  for (int done = 0; !done;) {
    int flag = 0, bytes = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, turn++ % TAGS, comm, &flag, &status); /* one may be behind others, of other tags */
    if (flag) {
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      MPI_Recv(in, bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm, MPI_STATUS_IGNORE);
      const unsigned char byte = (unsigned char)(status.MPI_SOURCE + bytes);
      wrong += in[0] != byte || in[bytes - 1] != byte || status.MPI_TAG != bytes % TAGS;
      ++got;
    }
    if (barrier != MPI_REQUEST_NULL) {
      MPI_Test(&barrier, &done, MPI_STATUS_IGNORE);
    } else {
      MPI_Testall(count, sends, &flag, MPI_STATUSES_IGNORE);
      if (flag) MPI_Ibarrier(comm, &barrier);
    }
  }
  MPI_Reduce_scatter(sent, &expected, ones, MPI_INT, MPI_SUM, comm);
  if (got != expected) fprintf(stderr, "rank %d: %d of %d messages\n", rank, got, expected), ++wrong;
  MPI_Barrier(comm); /* what was not received is of no other round */
}

static void end(const char* part) {
  report(part, wrong == 0);
  wrong = 0;
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  memset(out, 7, sizeof(out));
  state = 77u + (unsigned)rank;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* one is truncated */
  for (int probe = 0; probe < PROBES; ++probe)
    for (int receiving = 0; receiving < RECEIVES; ++receiving) probed(probe, receiving, receiving == probe);
  end("probed only");
  held_beside();
  end("probed beside others");
  received(0);
  received(1);
  end("received");
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int round = 0; round < ROUNDS; ++round) consensus(comm);
  MPI_Comm_free(&comm);
  end("consensus");
  return finish();
}
