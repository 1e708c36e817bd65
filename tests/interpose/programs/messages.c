/* SPDX-License-Identifier: BSD-3-Clause
 * Point-to-point messages of all lengths, in all calls. Every section is repeated: who has never sent a long message has
 * no room at its receiver yet.
 * Usage: messages [overlap FOLDER | lost FOLDER]
 * lost: the service is stopped and ended by somebody else with messages under way; they arrive, and so do messages that
 * follow.
 * overlap: a rank leaves MPI until its peer's call is complete; natively that does not end. */
#include "messages.h"

#include <stdint.h>

enum { ROUNDS = 4, MOST = 300000 };

static unsigned char *out, *in;

static int says_all(const MPI_Status* status, int source, int tag, int bytes) {
  int elements = -1, cancelled = 1;
  MPI_Get_elements(status, MPI_BYTE, &elements);
  MPI_Test_cancelled(status, &cancelled);
  return says(status, source, tag, bytes) && elements == bytes && !cancelled;
}

static const int kLengths[] = {0, 1, 1023, 1024, 1025, 2047, 2048, 2049, 5000, 65536, 100001, MOST};
enum { LENGTHS = sizeof(kLengths) / sizeof(kLengths[0]) };

static int ring_wait(int round) {
  int ok = 1;
  for (int k = 0; k < LENGTHS; ++k) {
    MPI_Request receive, send;
    MPI_Status status;
    memset(in, 0, MOST);
    fill(out, kLengths[k], rank + round + k);
    MPI_Irecv(in, MOST, MPI_BYTE, left_of, k, MPI_COMM_WORLD, &receive);
    MPI_Isend(out, kLengths[k], MPI_BYTE, right_of, k, MPI_COMM_WORLD, &send);
    MPI_Wait(&receive, &status);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    ok = ok && says_all(&status, left_of, k, kLengths[k]) && is_filled(in, kLengths[k], left_of + round + k) &&
         in[MOST] == 77 && receive == MPI_REQUEST_NULL && send == MPI_REQUEST_NULL;
  }
  return ok;
}

static int ring_test(int round) {
  int ok = 1;
  for (int k = 0; k < LENGTHS; ++k) {
    MPI_Request receive, send;
    MPI_Status status;
    int received = 0, sent = 0;
    fill(out, kLengths[k], rank + round + k);
    MPI_Irecv(in, MOST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &receive);
    MPI_Issend(out, kLengths[k], MPI_BYTE, right_of, k, MPI_COMM_WORLD, &send);
    while (!received || !sent) {
      if (!received) MPI_Test(&receive, &received, &status);
      if (!sent) MPI_Test(&send, &sent, MPI_STATUS_IGNORE);
    }
    ok = ok && says_all(&status, left_of, k, kLengths[k]) && is_filled(in, kLengths[k], left_of + round + k);
  }
  return ok;
}

/* Many under way between each two, in one tag: they come in order. */
enum { MANY = 12, EACH = 20000 };
static int many_at_once(int round) {
  MPI_Request requests[2 * MANY];
  MPI_Status statuses[2 * MANY];
  int ok = 1;
  for (int k = 0; k < MANY; ++k) {
    MPI_Irecv(in + k * EACH, EACH, MPI_BYTE, left_of, 5, MPI_COMM_WORLD, &requests[k]);
    fill(out + k * EACH, EACH - k * 700, rank + k + round);
  }
  for (int k = 0; k < MANY; ++k)
    MPI_Isend(out + k * EACH, EACH - k * 700, MPI_BYTE, right_of, 5, MPI_COMM_WORLD, &requests[MANY + k]);
  MPI_Waitall(2 * MANY, requests, round % 2 ? MPI_STATUSES_IGNORE : statuses);
  for (int k = 0; k < MANY; ++k) {
    ok = ok && is_filled(in + k * EACH, EACH - k * 700, left_of + k + round);
    ok = ok && (round % 2 || says_all(&statuses[k], left_of, 5, EACH - k * 700));
  }
  return ok;
}

static int blocking(int round) {
  int ok = 1;
  for (int k = 0; k < LENGTHS; ++k) {
    MPI_Request send;
    MPI_Status status;
    fill(out, kLengths[k], rank + round);
    MPI_Isend(out, kLengths[k], MPI_BYTE, right_of, k, MPI_COMM_WORLD, &send);
    MPI_Recv(in, MOST, MPI_BYTE, left_of, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    ok = ok && says_all(&status, left_of, k, kLengths[k]) && is_filled(in, kLengths[k], left_of + round);
  }
  return ok;
}

static void section(const char* name, int (*run)(int round)) {
  int ok = 1;
  for (int round = 0; round < ROUNDS; ++round) ok = run(round) && ok;
  report(name, ok);
}

/* ---- overlap */

/* Whether a send completes while its receiver is not in MPI: it needs room there, which is granted meanwhile. */
static int send_alone(int try) {
  char sent[32], posted[32];
  int done = 0, alone = 0;
  MPI_Request request;
  snprintf(sent, sizeof(sent), "sent%d", try);
  snprintf(posted, sizeof(posted), "posted%d", try);
  if (rank == 0) {
    stay_out_until(posted);
    MPI_Isend(out, MOST, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request);
    for (int test = 0; test < 500 && !done; ++test) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (!done) usleep(1000);
    }
    alone = done;
    leave_mark(sent);
    if (!done) MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    memset(in, 0, MOST);
    MPI_Irecv(in, MOST, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request);
    leave_mark(posted);
    stay_out_until(sent);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (!is_filled(in, MOST, 100)) MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Bcast(&alone, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return alone;
}

static void overlap(void) {
  MPI_Request request;
  int alone = 0;
  fill(out, MOST, 100 + rank);
  for (int try = 0; try < 20 && !alone; ++try) alone = send_alone(try);
  report("while the receiver computes", alone);
  if (rank == 0) {
    MPI_Isend(out, MOST, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &request);
    stay_out_until("received");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    memset(in, 0, MOST);
    MPI_Recv(in, MOST, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    leave_mark("received");
  }
  report("while the sender computes", rank == 0 || is_filled(in, MOST, 100));
}

/* ---- lost */

static void lost(void) {
  MPI_Request requests[2 * MANY];
  int ok = 1;
  if (rank == 0) leave_mark("there");
  stay_out_until("stopped");
  for (int k = 0; k < MANY; ++k) {
    fill(out + k * EACH, EACH, rank + k);
    memset(in + k * EACH, 0, EACH);
    MPI_Irecv(in + k * EACH, EACH, MPI_BYTE, left_of, 6, MPI_COMM_WORLD, &requests[k]);
    (k % 2 ? MPI_Isend : MPI_Issend)(out + k * EACH, EACH, MPI_BYTE, right_of, 6, MPI_COMM_WORLD, &requests[MANY + k]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) leave_mark("posted");
  MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
  for (int k = 0; k < MANY; ++k) ok = ok && is_filled(in + k * EACH, EACH, left_of + k);
  report("messages under way", ok);
  report("messages that follow", many_at_once(1) && many_at_once(2));
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  out = malloc(MOST + 1);
  in = malloc(MOST + 1);
  in[MOST] = 77;
  if (argc > 2 && strcmp(argv[1], "overlap") == 0) {
    folder = argv[2];
    overlap();
    return finish();
  }
  if (argc > 2 && strcmp(argv[1], "lost") == 0) {
    folder = argv[2];
    lost();
    return finish();
  }
  section("wait", ring_wait);
  section("test", ring_test);
  section("many at once", many_at_once);
  section("blocking receives", blocking);
  return finish();
}
