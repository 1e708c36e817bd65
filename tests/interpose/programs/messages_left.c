/* SPDX-License-Identifier: BSD-3-Clause
 * Messages that nobody receives for long, or ever: room at the receiver is bounded, what has none waits as MPI says, and
 * MPI_Finalize does not. */
#include "world.h"

enum { MANY = 60, BYTES = 60000, SHORT = 3000 };

static MPI_Comm comm;

static int is(const unsigned char* data, int bytes, int value) {
  for (int i = 0; i < bytes; ++i)
    if (data[i] != (unsigned char)value) return 0;
  return 1;
}

/* More than there is room for, before the first one is received. */
static int late(void) {
  static unsigned char out[MANY][BYTES], in[BYTES];
  MPI_Request sends[MANY];
  int ok = 1, flag;
  for (int k = 0; k < MANY; ++k) {
    memset(out[k], k + rank, BYTES);
    MPI_Isend(out[k], BYTES, MPI_BYTE, right_of, 1, comm, &sends[k]);
    if (k % 8 == 0) MPI_Test(&sends[k], &flag, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(comm);
  for (int k = 0; k < MANY; ++k) {
    MPI_Recv(in, BYTES, MPI_BYTE, left_of, 1, comm, MPI_STATUS_IGNORE);
    ok = ok && is(in, BYTES, k + left_of);
  }
  MPI_Waitall(MANY, sends, MPI_STATUSES_IGNORE);
  return ok;
}

/* Too little room for a ticket: an error, and what follows arrives. */
static int truncated(void) {
  static unsigned char out[BYTES], in[BYTES];
  int ok = 1;
  memset(out, rank, BYTES);
  for (int k = 0; k < MANY; ++k) {
    const int room = k % 3 == 0 ? 40 : BYTES;
    MPI_Request send;
    MPI_Isend(out, BYTES, MPI_BYTE, right_of, k, comm, &send);
    const int code = MPI_Recv(in, room, MPI_BYTE, left_of, k, comm, MPI_STATUS_IGNORE);
    ok = ends_with(code, room == BYTES ? MPI_SUCCESS : MPI_ERR_TRUNCATE) && ok &&
         (room < BYTES || is(in, BYTES, left_of));
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  }
  return ok;
}

/* One that was matched, one that was probed, one that nobody looks at. */
static int never(int synchronous) {
  static unsigned char out[SHORT];
  MPI_Request sends[3];
  MPI_Message message;
  MPI_Status status;
  int count, ok;
  const int tag = synchronous ? 20 : 10;
  for (int k = 0; k < 3; ++k)
    (synchronous ? MPI_Issend : MPI_Isend)(out, SHORT, MPI_BYTE, right_of, tag + k, comm, &sends[k]);
  MPI_Mprobe(left_of, tag, comm, &message, &status);
  MPI_Get_count(&status, MPI_BYTE, &count);
  ok = count == SHORT;
  MPI_Probe(left_of, tag + 1, comm, &status);
  MPI_Get_count(&status, MPI_BYTE, &count);
  if (!synchronous) MPI_Waitall(3, sends, MPI_STATUSES_IGNORE);
  for (int k = 0; synchronous && k < 3; ++k) MPI_Request_free(&sends[k]);
  return ok && count == SHORT;
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  comm = MPI_COMM_WORLD;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  report("received late", late());
  report("truncated", truncated());
  report("never received", never(0));
  report("never matched", never(1));
  return finish();
}
