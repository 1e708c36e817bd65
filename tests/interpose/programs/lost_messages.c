/* SPDX-License-Identifier: BSD-3-Clause
 * Messages of every kind that are under way when the service dies. Arguments: "leaving" if nothing is done with them, a
 * folder. */
#include "losing.h"

enum { INTS = 5000, SHORT = 40 };

static unsigned char out[32][BYTES], in[32][BYTES];
static MPI_Request sends[32], receives[32];

static void send(int id, int to, MPI_Comm comm) {
  fill(out[id], rank, id);
  MPI_Isend(out[id], BYTES, MPI_BYTE, to, id, comm, &sends[id]);
}

static void send_synchronously(int id, int to) {
  fill(out[id], rank, id);
  MPI_Issend(out[id], BYTES, MPI_BYTE, to, id, MPI_COMM_WORLD, &sends[id]);
}

static void receive(int id, int from, MPI_Comm comm) {
  memset(in[id], 0, BYTES);
  MPI_Irecv(in[id], BYTES, MPI_BYTE, from, id, comm, &receives[id]);
}

static void await(int id, int from, const char* what) {
  expect(MPI_Wait(&receives[id], MPI_STATUS_IGNORE) == MPI_SUCCESS, what);
  expect(is_filled(in[id], BYTES, from, id), what);
  expect(MPI_Wait(&sends[id], MPI_STATUS_IGNORE) == MPI_SUCCESS, what);
}

static void receive_now(int id, const char* what) {
  memset(in[id], 0, BYTES);
  expect(MPI_Recv(in[id], BYTES, MPI_BYTE, left_of, id, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS, what);
  expect(is_filled(in[id], BYTES, left_of, id), what);
}

/* The last rank waits while the others block in calls of the library. They have what it needs, and need it themselves. */
static void blocked_begin(void) {
  const int last = size - 1;
  for (int r = 0; r < last; ++r) {
    if (rank == last) send(r, r, MPI_COMM_WORLD), receive(r, r, MPI_COMM_WORLD);
    if (rank == r) receive(r, last, MPI_COMM_WORLD), send(r, last, MPI_COMM_WORLD);
  }
}

static void blocked_end(void) {
  const int last = size - 1;
  int word = 0;
  if (rank == last) {
    for (int r = 0; r < last; ++r) await(r, r, "blocked");
    MPI_Send(&word, 1, MPI_INT, 0, 99, MPI_COMM_WORLD);
  }
  if (rank == 0) MPI_Recv(&word, 1, MPI_INT, last, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != last) await(rank, last, "blocked");
}

static void freed_begin(void) {
  send(4, right_of, MPI_COMM_WORLD);
  send_synchronously(5, right_of);
  fill(out[20], rank, 20);
  MPI_Ssend_init(out[20], BYTES, MPI_BYTE, right_of, 20, MPI_COMM_WORLD, &sends[20]);
  MPI_Start(&sends[20]);
  send(21, right_of, MPI_COMM_WORLD);
  receive(21, left_of, MPI_COMM_WORLD);
  MPI_Request_free(&receives[21]);
  for (int id = 20; id < 22; ++id) MPI_Request_free(&sends[id]), MPI_Request_free(&sends[id - 16]);
}

static void freed_end(void) {
  for (int id = 5; id > 3; --id) receive_now(id, "freed");
  receive_now(20, "freed");
}

static void persistent_begin(void) {
  for (int id = 6; id < 8; ++id) {
    fill(out[id], rank, id);
    (id == 6 ? MPI_Send_init : MPI_Ssend_init)(out[id], BYTES, MPI_BYTE, right_of, id, MPI_COMM_WORLD, &sends[id]);
    MPI_Recv_init(in[id], BYTES, MPI_BYTE, left_of, id, MPI_COMM_WORLD, &receives[id]);
    MPI_Start(&sends[id]);
    MPI_Start(&receives[id]);
  }
}

static void persistent_end(void) {
  for (int id = 6; id < 8; ++id) {
    for (int turn = 0; turn < 3; ++turn) {
      await(id, left_of, "persistent");
      memset(in[id], 0, BYTES);
      if (turn < 2) MPI_Start(&receives[id]), MPI_Start(&sends[id]);
    }
    MPI_Request_free(&sends[id]);
    MPI_Request_free(&receives[id]);
  }
}

/* Ranges with gaps, long and short ones, whose datatype is gone when they have to be sent again. */
static int ranges[2][2 * INTS + 100], got[2 * INTS];

static void derived_begin(void) {
  MPI_Datatype type;
  for (int i = 0; i < 2 * INTS + 100; ++i) ranges[0][i] = ranges[1][i] = value_of(rank, 1, i, 8);
  MPI_Type_vector(2, INTS, INTS + 100, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Isend(ranges[0], 1, type, right_of, 8, MPI_COMM_WORLD, &sends[8]);
  MPI_Type_free(&type);
  const int lengths[2] = {INTS, INTS};
  MPI_Aint places[2];
  for (int i = 0; i < 2; ++i) MPI_Get_address(&ranges[1][i * (INTS + 100)], &places[i]);
  MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Isend(MPI_BOTTOM, 1, type, right_of, 9, MPI_COMM_WORLD, &sends[9]);
  MPI_Type_free(&type);
  MPI_Type_vector(INTS, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Isend(ranges[0], 1, type, right_of, 22, MPI_COMM_WORLD, &sends[22]);
  MPI_Type_free(&type);
}

static void derived_end(void) {
  for (int id = 8; id < 10; ++id) {
    memset(got, 0, sizeof(got));
    MPI_Recv(got, 2 * INTS, MPI_INT, left_of, id, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2 * INTS; ++i)
      if (got[i] != value_of(left_of, 1, i < INTS ? i : i + 100, 8)) expect(0, "derived"), i = 2 * INTS;
    expect(MPI_Wait(&sends[id], MPI_STATUS_IGNORE) == MPI_SUCCESS, "derived");
  }
  MPI_Recv(got, INTS, MPI_INT, left_of, 22, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < INTS; ++i) expect(got[i] == value_of(left_of, 1, 2 * i, 8), "columns");
  expect(MPI_Wait(&sends[22], MPI_STATUS_IGNORE) == MPI_SUCCESS, "columns");
}

/* With room for a part, and for less than a ticket. */
static void too_short_begin(void) {
  for (int id = 10; id < 12; ++id) send(id, right_of, MPI_COMM_WORLD);
  MPI_Irecv(in[10], BYTES / 2, MPI_BYTE, left_of, 10, MPI_COMM_WORLD, &receives[10]);
  MPI_Irecv(in[11], SHORT, MPI_BYTE, left_of, 11, MPI_COMM_WORLD, &receives[11]);
}

static void too_short_end(void) {
  for (int id = 10; id < 12; ++id) {
    expect(ends_with(MPI_Wait(&receives[id], MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE), "too short");
    expect(MPI_Wait(&sends[id], MPI_STATUS_IGNORE) == MPI_SUCCESS, "too short");
  }
}

/* A send that is not cancelled any more, one whose communicator is freed, one to the rank itself, from anywhere. */
static void others_begin(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int id = 12; id < 16; ++id) {
    const int itself = id == 14;
    send(id, itself ? rank : right_of, id == 13 ? comm : MPI_COMM_WORLD);
    receive(id, itself ? rank : id == 15 ? MPI_ANY_SOURCE : left_of, id == 13 ? comm : MPI_COMM_WORLD);
  }
  MPI_Comm_free(&comm);
}

static void others_end(void) {
  MPI_Status status;
  MPI_Wait(&receives[12], MPI_STATUS_IGNORE);
  MPI_Cancel(&sends[12]);
  MPI_Wait(&sends[12], &status);
  expect(is_filled(in[12], BYTES, left_of, 12), "cancelled");
  await(13, left_of, "freed communicator");
  await(14, rank, "itself");
  await(15, left_of, "from anywhere");
}

/* What nobody receives, and MPI_Finalize does not wait for: unseen, or seen by a probe. */
static void left_begin(void) {
  for (int id = 16; id < 18; ++id) send(id, right_of, MPI_COMM_WORLD), MPI_Request_free(&sends[id]);
  for (int id = 18; id < 20; ++id) send_synchronously(id, right_of), MPI_Request_free(&sends[id]);
}

static void left_end(void) {
  MPI_Status status;
  int bytes;
  for (int id = 17; id < 20; id += 2) {
    MPI_Probe(left_of, id, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    expect(bytes == BYTES, "left");
  }
}

static const struct Part {
  const char* name;
  void (*begin)(void);
  void (*end)(void);
} parts[] = {{"blocked", blocked_begin, blocked_end},
             {"freed", freed_begin, freed_end},
             {"persistent", persistent_begin, persistent_end},
             {"derived", derived_begin, derived_end},
             {"too short", too_short_begin, too_short_end},
             {"others", others_begin, others_end},
             {"left", left_begin, left_end}};
enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

int main(int argc, char** argv) {
  begin(&argc, &argv, MPI_THREAD_SINGLE);
  stopped();
  if (argc > 2) { /* it dies while MPI_Finalize goes on */
    left_begin();
    report("left at once", 1);
    posted();
    return finish();
  }
  for (int part = 0; part < PARTS; ++part) parts[part].begin();
  posted();
  for (int part = 0; part < PARTS; ++part) parts[part].end(), end(parts[part].name);
  const int status = finish();
  return is_filled(in[21], BYTES, left_of, 21) ? status : 1; /* the receive that was freed */
}
