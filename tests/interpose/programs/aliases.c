/* SPDX-License-Identifier: BSD-3-Clause
 * A forgotten MPI_IN_PLACE: one rank gives the memory of its own part of the result as what it sends, all others do it
 * right. MPI forbids that, and Open MPI does what was meant. */
#include "world.h"

enum { COUNT = 5000, MEMBERS = 16 };

static int liar;
static int send[COUNT * MEMBERS], recv[COUNT * MEMBERS], counts[MEMBERS], displs[MEMBERS];

/* Own data, at the beginning of `send` or where this rank's part of `recv` is. */
static int* own(int index) {
  int* at = rank == liar ? recv + index * COUNT : send;
  memset(recv, 0, sizeof(recv));
  for (int i = 0; i < COUNT; ++i) at[i] = value_of(rank, 0, i, 0);
  return at;
}

static int part_is_of(int index, int from) {
  for (int i = 0; i < COUNT; ++i) {
    if (recv[index * COUNT + i] != value_of(from, 0, i, 0)) return 0;
  }
  return 1;
}

static int all_parts(void) {
  int ok = 1;
  for (int from = 0; from < size; ++from) ok = ok && part_is_of(from, from);
  return ok;
}

static void wait_for(MPI_Request* request) { MPI_Wait(request, MPI_STATUS_IGNORE); }

static void check_all(void) {
  MPI_Request request;
  const MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Iallgather(own(rank), COUNT, MPI_INT, recv, COUNT, MPI_INT, comm, &request), wait_for(&request);
  report("iallgather", all_parts());
  MPI_Iallgatherv(own(rank), COUNT, MPI_INT, recv, counts, displs, MPI_INT, comm, &request), wait_for(&request);
  report("iallgatherv", all_parts());
  MPI_Igather(own(rank), COUNT, MPI_INT, recv, COUNT, MPI_INT, liar, comm, &request), wait_for(&request);
  report("igather", rank != liar || all_parts());
  MPI_Igatherv(own(rank), COUNT, MPI_INT, recv, counts, displs, MPI_INT, liar, comm, &request), wait_for(&request);
  report("igatherv", rank != liar || all_parts());
  memset(recv, 0, sizeof(recv));
  for (int i = 0; i < COUNT * size; ++i) send[i] = value_of(i / COUNT, 0, i % COUNT, 0);
  int* part = rank == liar ? send + rank * COUNT : recv + rank * COUNT;
  MPI_Iscatter(send, COUNT, MPI_INT, part, COUNT, MPI_INT, liar, comm, &request), wait_for(&request);
  report("iscatter", rank == liar || part_is_of(rank, rank));
  MPI_Iallreduce(own(0), recv, COUNT, MPI_INT, MPI_SUM, comm, &request), wait_for(&request);
  report("iallreduce", are_sums(recv, COUNT, size - 1));
  MPI_Ireduce(own(0), recv, COUNT, MPI_INT, MPI_SUM, liar, comm, &request), wait_for(&request);
  report("ireduce", rank != liar || are_sums(recv, COUNT, size - 1));
  MPI_Iscan(own(0), recv, COUNT, MPI_INT, MPI_SUM, comm, &request), wait_for(&request);
  report("iscan", are_sums(recv, COUNT, rank));
  int* mine = rank == liar ? recv : send;
  for (int i = 0; i < COUNT * size; ++i) mine[i] = value_of(rank, i / COUNT, i % COUNT, 0);
  MPI_Ialltoall(mine, COUNT, MPI_INT, recv, COUNT, MPI_INT, comm, &request), wait_for(&request);
  int ok = 1;
  for (int i = 0; i < COUNT * size; ++i) ok = ok && recv[i] == value_of(i / COUNT, rank, i % COUNT, 0);
  report("ialltoall", ok);
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  for (int i = 0; i < MEMBERS; ++i) counts[i] = COUNT, displs[i] = i * COUNT;
  for (liar = 0; liar < size; liar += size - 1) check_all();
  return finish();
}
