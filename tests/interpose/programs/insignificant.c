/* SPDX-License-Identifier: BSD-3-Clause
 * Arguments that MPI says mean nothing at a rank are anything there: none, or not what they are elsewhere. */
#include "world.h"

enum { COUNT = 5000, MEMBERS = 16 };

static int root;
static int send[COUNT * MEMBERS], recv[COUNT * MEMBERS], counts[MEMBERS], displs[MEMBERS];
static const MPI_Comm comm = MPI_COMM_WORLD;
static MPI_Request request;
#ifdef OPEN_MPI
static void* const no_place = NULL;
#else
static void* const no_place = (void*)64; /* MPICH does not like none */
#endif

/* Every part of `send` is for the rank that it has the number of. */
static void begin(void) {
  memset(recv, 0, sizeof(recv));
  for (int i = 0; i < COUNT * size; ++i) send[i] = value_of(rank, i / COUNT, i % COUNT, 0);
}

static int part_is(const int* part, int from, int to) {
  for (int i = 0; i < COUNT; ++i)
    if (part[i] != value_of(from, to, i, 0)) return 0;
  return 1;
}

static int all_parts(int to_each) {
  int ok = 1;
  for (int from = 0; from < size; ++from) ok = ok && part_is(recv + from * COUNT, from, to_each ? rank : 0);
  return ok;
}

static void end(const char* name, int ok) {
  static char text[64];
  snprintf(text, sizeof(text), "%s, root %d", name, root);
  report(text, ok);
}

#define WAIT MPI_Wait(&request, MPI_STATUS_IGNORE)

static void rooted(void) {
  const int here = rank == root;
  const MPI_Datatype here_type = here ? MPI_INT : MPI_DATATYPE_NULL;
  int* const at_root = here ? recv : NULL;
  begin();
  MPI_Igather(send, COUNT, MPI_INT, at_root, here ? COUNT : -1, here_type, root, comm, &request), WAIT;
  end("igather", !here || all_parts(0));
  begin();
  MPI_Igatherv(send, COUNT, MPI_INT, at_root, here ? counts : NULL, here ? displs : NULL, here_type, root, comm,
               &request);
  WAIT;
  end("igatherv", !here || all_parts(0));
  begin();
  MPI_Iscatter(here ? send : NULL, here ? COUNT : -1, here_type, recv, COUNT, MPI_INT, root, comm, &request), WAIT;
  end("iscatter", part_is(recv, root, rank));
  begin();
  MPI_Iscatterv(here ? send : NULL, here ? counts : NULL, here ? displs : NULL, here_type, recv, COUNT, MPI_INT, root,
                comm, &request);
  WAIT;
  end("iscatterv", part_is(recv, root, rank));
  begin();
  MPI_Ireduce(send, at_root, COUNT, MPI_INT, MPI_SUM, root, comm, &request), WAIT;
  end("ireduce", !here || are_sums(recv, COUNT, size - 1));
}

static void in_place(void) {
  const int here = rank == root;
  const void* const mine = here ? MPI_IN_PLACE : send;
  begin();
  if (here) memcpy(recv + rank * COUNT, send, sizeof(int) * COUNT);
  MPI_Igather(mine, here ? 0 : COUNT, here ? MPI_DATATYPE_NULL : MPI_INT, recv, COUNT, MPI_INT, root, comm, &request),
      WAIT;
  end("igather in place", !here || all_parts(0));
  begin();
  MPI_Iscatter(send, COUNT, MPI_INT, here ? MPI_IN_PLACE : recv, here ? 0 : COUNT, here ? MPI_DATATYPE_NULL : MPI_INT,
               root, comm, &request);
  WAIT;
  end("iscatter in place", here || part_is(recv, root, rank));
}

static void of_all(void) {
  begin();
  memcpy(recv + rank * COUNT, send, sizeof(int) * COUNT);
  MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, COUNT, MPI_INT, comm, &request), WAIT;
  end("iallgather in place", all_parts(0));
  begin();
  memcpy(recv, send, sizeof(send));
  MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, COUNT, MPI_INT, comm, &request), WAIT;
  end("ialltoall in place", all_parts(1));
  /* The first rank gets nothing, so it may have no place for it. */
  begin();
  MPI_Iexscan(send, rank == 0 ? no_place : recv, COUNT, MPI_INT, MPI_SUM, comm, &request), WAIT;
  end("iexscan", rank == 0 || are_sums(recv, COUNT, rank - 1));
}

/* Displacements may be addresses, at one rank only. */
static void from_addresses(void) {
  const int here = rank == root, before = (rank + size - 1) % size, after = (rank + 1) % size, one = 1, count = COUNT;
  const MPI_Datatype type = MPI_INT;
  MPI_Aint from = 0, to = 0;
  MPI_Comm ring;
  MPI_Dist_graph_create_adjacent(comm, 1, &before, &one, 1, &after, &one, MPI_INFO_NULL, 0, &ring);
  begin();
  if (here) MPI_Get_address(send, &from), MPI_Get_address(recv, &to);
  MPI_Ineighbor_alltoallw(here ? MPI_BOTTOM : send, &count, &from, &type, here ? MPI_BOTTOM : recv, &count, &to, &type,
                          ring, &request);
  WAIT;
  end("ineighbor_alltoallw", part_is(recv, before, 0));
  MPI_Comm_free(&ring);
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  for (int i = 0; i < MEMBERS; ++i) counts[i] = COUNT, displs[i] = i * COUNT;
  for (root = 0; root < size; root += size - 1) {
    rooted();
    in_place();
    of_all();
    from_addresses();
  }
  return finish();
}
