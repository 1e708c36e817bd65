/* SPDX-License-Identifier: BSD-3-Clause
 * Synchronous sends that only a probe has seen when the service dies: they are complete when they are received, not
 * before. One is probed while the service lives, one while it is stopped, one when its end is known. Argument: a folder. */
#include "losing.h"

enum { BEFORE, MEANWHILE, AFTERWARDS, MATCHED, NEVER_PROBED, SENDS, FREED = SENDS };

/* Words both ways: whatever else was under way has had its time. */
static void talk(void) {
  int word = 0;
  for (int i = 0; i < 20; ++i) {
    MPI_Sendrecv_replace(&word, 1, MPI_INT, 1 - rank, 20, 1 - rank, 20, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    usleep(2000);
  }
}

static void sender(void) {
  static unsigned char out[SENDS + 1][BYTES];
  MPI_Request sends[SENDS + 1];
  int done, word;
  for (int id = 0; id <= SENDS; ++id) {
    if (id == MEANWHILE) {
      MPI_Recv(&word, 1, MPI_INT, 1, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      stopped();
    }
    fill(out[id], rank, id);
    MPI_Issend(out[id], BYTES, MPI_BYTE, 1, id, MPI_COMM_WORLD, &sends[id]);
  }
  MPI_Request_free(&sends[FREED]);
  posted();
  MPI_Recv(&word, 1, MPI_INT, 1, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  /* In the order in which they are received. */
  for (int id = SENDS - 1; id >= 0; --id) {
    talk();
    for (int early = 0; early <= id; ++early) {
      expect(MPI_Test(&sends[early], &done, MPI_STATUS_IGNORE) == MPI_SUCCESS, "failed before it is received");
      expect(!done, "complete before it is received");
    }
    MPI_Send(&word, 1, MPI_INT, 1, 22, MPI_COMM_WORLD);
    expect(MPI_Wait(&sends[id], MPI_STATUS_IGNORE) == MPI_SUCCESS, "received");
    MPI_Send(&word, 1, MPI_INT, 1, 23, MPI_COMM_WORLD);
  }
}

static void probe(int id) {
  MPI_Status status;
  int bytes = 0;
  MPI_Probe(0, id, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  expect(bytes == BYTES, "probed");
}

static unsigned char in[BYTES];

static void receiver(void) {
  MPI_Message message;
  MPI_Request request;
  int word = 0;
  probe(BEFORE);
  MPI_Send(&word, 1, MPI_INT, 0, 21, MPI_COMM_WORLD);
  stopped();
  posted();
  probe(MEANWHILE);
  for (int i = 0; i < 50; ++i) MPI_Iprobe(0, 30, MPI_COMM_WORLD, &word, MPI_STATUS_IGNORE), usleep(2000);
  probe(AFTERWARDS);
  probe(FREED);
  MPI_Mprobe(0, MATCHED, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Send(&word, 1, MPI_INT, 0, 21, MPI_COMM_WORLD);
  for (int id = SENDS - 1; id >= 0; --id) {
    talk();
    MPI_Recv(&word, 1, MPI_INT, 0, 22, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    memset(in, 0, BYTES);
    if (id == MATCHED)
      MPI_Imrecv(in, BYTES, MPI_BYTE, &message, &request);
    else
      MPI_Irecv(in, BYTES, MPI_BYTE, 0, id, MPI_COMM_WORLD, &request);
    /* The send is complete before this rank asks for more. */
    MPI_Recv(&word, 1, MPI_INT, 0, 23, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && is_filled(in, BYTES, 0, id), "received");
  }
}

/* Messages of the program's, as long as tickets of such sends are: a probe asks for them once, not each time. */
static void look_alike(void) {
  enum { MANY = 200 };
  int word = 0;
  const double begun = MPI_Wtime();
  for (int i = 0; i < MANY && rank == 0; ++i) MPI_Send(in, 1025, MPI_BYTE, 1, 24, MPI_COMM_WORLD);
  for (int i = 0; i < MANY && rank == 1; ++i) {
    MPI_Probe(0, 24, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(in, 1025, MPI_BYTE, 0, 24, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (rank == 0) MPI_Recv(&word, 1, MPI_INT, 1, 25, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(&word, 1, MPI_INT, 0, 25, MPI_COMM_WORLD);
  expect(MPI_Wtime() - begun < 2, "probes were slow");
}

int main(int argc, char** argv) {
  begin(&argc, &argv, MPI_THREAD_SINGLE);
  if (rank == 0) sender();
  if (rank == 1) receiver();
  if (rank > 1) stopped(), posted();
  look_alike();
  end("held");
  /* The words about it are the last ones. */
  if (rank == 1) {
    MPI_Recv(in, BYTES, MPI_BYTE, 0, FREED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!is_filled(in, BYTES, 0, FREED)) ++check_failures;
  }
  return finish();
}
