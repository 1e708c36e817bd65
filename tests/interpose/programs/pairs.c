/* SPDX-License-Identifier: BSD-3-Clause
 * Irregular collectives whose blocks are none, short or long, by pair: some ranks have short ones only, several
 * operations are under way at once and end in another order, and regular ones come between. The driver's policy calls
 * blocks of 4 KiB and more long. */
#include "persistent_names.h"
#include "world.h"

enum { NONE = 0, SHORT = 100, LONG = 3000, MAX = 8, KINDS = 6 }; /* ints */

static MPI_Comm comm, graph;
static MPI_Datatype every_other; /* an int and a hole */

/* How much `from` sends to `to` in operation `id`; alike in both directions. Ranks from 2 on have no long blocks in two
 * thirds of the operations. */
static int amount(int from, int to, int id) {
  const int low = from < to ? from : to, high = from < to ? to : from;
  const int what = (low * 5 + high * 3 + id) % 4;
  if (what == 0) return NONE;
  if (what == 1 || (high >= 2 && id % 3 != 0)) return SHORT + low + high;
  return LONG + 10 * low + high;
}

/* One operation: buffers are by peer, LONG + 100 ints (or twice as many, with holes) apart. */
typedef struct {
  int kind, id, blocks, peers[MAX];
  int *send, *recv, counts[MAX], displs[MAX];
  MPI_Aint addresses[MAX];
  MPI_Datatype types[MAX];
  MPI_Request request;
} Exchange;

enum { STRIDE = 2 * (LONG + 100) };
enum { ALLTOALLV, ALLTOALLW, IN_PLACE, GATHERV, SCATTERV, NEIGHBORS };

static int holes(const Exchange* e, int peer) { return e->kind == ALLTOALLW && (peer + rank + e->id) % 2 == 0 ? 2 : 1; }

static void fill(Exchange* e) {
  for (int b = 0; b < e->blocks; ++b) {
    for (int i = 0; i < STRIDE; ++i) e->send[b * STRIDE + i] = e->recv[b * STRIDE + i] = -1;
    int* from = e->kind == IN_PLACE ? e->recv : e->send;
    const int step = holes(e, e->peers[b]);
    for (int i = 0; i < e->counts[b]; ++i) from[b * STRIDE + i * step] = value_of(rank, e->peers[b], i, e->id);
  }
}

/* What lies in block b at the end: the peer's data, and nothing beside it. */
static int right(const Exchange* e) {
  const int root = e->id % size;
  for (int b = 0; b < e->blocks; ++b) {
    const int peer = e->peers[b], step = holes(e, peer);
    const int gets = e->kind == GATHERV ? rank == root : e->kind == SCATTERV ? peer == root : 1;
    for (int i = 0; i < STRIDE; ++i) {
      const int at = i / step;
      int expected = -1;
      if (gets && i % step == 0 && at < e->counts[b]) expected = value_of(peer, rank, at, e->id);
      if (e->recv[b * STRIDE + i] != expected) {
        fprintf(stderr, "rank %d, kind %d, operation %d: block %d from %d is wrong at %d\n", rank, e->kind, e->id, b,
                peer, i);
        return 0;
      }
    }
  }
  return 1;
}

static void describe(Exchange* e, int kind, int id) {
  e->kind = kind, e->id = id, e->blocks = kind == NEIGHBORS ? 2 * size : size;
  e->send = malloc(sizeof(int) * STRIDE * (size_t)e->blocks),
  e->recv = malloc(sizeof(int) * STRIDE * (size_t)e->blocks);
  for (int b = 0; b < e->blocks; ++b) { /* a neighbourhood has two edges between any two */
    e->peers[b] = b % size, e->counts[b] = amount(rank, b % size, id), e->displs[b] = b * STRIDE;
    if (kind == ALLTOALLW) e->displs[b] *= (int)sizeof(int);
    e->addresses[b] = (MPI_Aint)sizeof(int) * b * STRIDE;
    e->types[b] = holes(e, b % size) == 2 ? every_other : MPI_INT;
  }
  fill(e);
}

static void post(Exchange* e) {
  const int root = e->id % size;
  MPI_Request* r = &e->request;
  switch (e->kind) {
    case ALLTOALLV:
      MPI_Ialltoallv(e->send, e->counts, e->displs, MPI_INT, e->recv, e->counts, e->displs, MPI_INT, comm, r);
      break;
    case ALLTOALLW:
      MPI_Ialltoallw(e->send, e->counts, e->displs, e->types, e->recv, e->counts, e->displs, e->types, comm, r);
      break;
    case IN_PLACE:
      MPI_Ialltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, e->recv, e->counts, e->displs, MPI_INT, comm, r);
      break;
    case GATHERV:
      MPI_Igatherv(e->send + root * STRIDE, e->counts[root], MPI_INT, e->recv, e->counts, e->displs, MPI_INT, root,
                   comm, r);
      break;
    case SCATTERV:
      MPI_Iscatterv(e->send, e->counts, e->displs, MPI_INT, e->recv + root * STRIDE, e->counts[root], MPI_INT, root,
                    comm, r);
      break;
    default:
      MPI_Ineighbor_alltoallw(e->send, e->counts, e->addresses, e->types, e->recv, e->counts, e->addresses, e->types,
                              graph, r);
  }
}

static int finish_one(Exchange* e) {
  const int ok = right(e);
  free(e->send), free(e->recv);
  return ok;
}

static int one_by_one(int kind) {
  int ok = 1;
  for (int id = 0; id < 24; ++id) {
    Exchange e;
    describe(&e, kind, id);
    post(&e);
    if (id % 3 == 0)
      for (int flag = 0; !flag;) MPI_Test(&e.request, &flag, MPI_STATUS_IGNORE);
    else
      MPI_Wait(&e.request, MPI_STATUS_IGNORE);
    ok &= finish_one(&e);
  }
  return ok;
}

/* Of all kinds at once, with reductions between them, completed from the last or by any. */
static int many(int round) {
  enum { MANY = 60, REDUCED = 2000 };
  static Exchange e[MANY];
  static int ones[MANY][REDUCED], sums[MANY][REDUCED];
  MPI_Request requests[2 * MANY];
  int ok = 1;
  for (int k = 0; k < MANY; ++k) {
    describe(&e[k], k % KINDS, k + round);
    post(&e[k]);
    requests[k] = e[k].request;
    for (int i = 0; i < REDUCED; ++i) ones[k][i] = 1;
    MPI_Iallreduce(ones[k], sums[k], REDUCED, MPI_INT, MPI_SUM, comm, &requests[MANY + k]);
  }
  if (round % 2 == 0) {
    for (int k = 2 * MANY - 1; k >= 0; --k) MPI_Wait(&requests[(k + rank) % (2 * MANY)], MPI_STATUS_IGNORE);
  } else {
    for (int done = 0, index; done < 2 * MANY; ++done) MPI_Waitany(2 * MANY, requests, &index, MPI_STATUS_IGNORE);
  }
  for (int k = 0; k < MANY; ++k) ok &= finish_one(&e[k]) && sums[k][REDUCED - 1] == size;
  return ok;
}

static int persistent(void) {
  enum { MANY = 4 };
  Exchange e[MANY];
  MPI_Request requests[MANY];
  int ok = 1;
  for (int k = 0; k < MANY; ++k) {
    describe(&e[k], k % 2 == 0 ? ALLTOALLV : ALLTOALLW, k + 1);
    if (k % 2 == 0) INIT_OF(Alltoallv)
    (e[k].send, e[k].counts, e[k].displs, MPI_INT, e[k].recv, e[k].counts, e[k].displs, MPI_INT, comm, MPI_INFO_NULL,
     &requests[k]);
    else INIT_OF(Alltoallw)(e[k].send, e[k].counts, e[k].displs, e[k].types, e[k].recv, e[k].counts, e[k].displs,
                            e[k].types, comm, MPI_INFO_NULL, &requests[k]);
  }
  for (int round = 0; round < 10; ++round) {
    for (int k = 0; k < MANY; ++k) fill(&e[k]);
    MPI_Startall(MANY, requests);
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < MANY; ++k) ok &= right(&e[k]);
  }
  for (int k = 0; k < MANY; ++k) MPI_Request_free(&requests[k]), finish_one(&e[k]);
  return ok;
}

/* Left to MPI_Finalize. */
static void leave_behind(void) {
  static Exchange e[KINDS];
  for (int k = 0; k < KINDS; ++k) {
    describe(&e[k], k, 3);
    post(&e[k]);
    MPI_Request_free(&e[k].request);
  }
}

int main(int argc, char** argv) {
  static const char* const names[] = {"alltoallv", "alltoallw", "in place", "gatherv", "scatterv", "neighbors"};
  enter(&argc, &argv);
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every_other);
  MPI_Type_commit(&every_other);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  int neighbors[MAX], weights[MAX];
  for (int b = 0; b < 2 * size; ++b) neighbors[b] = b % size, weights[b] = 1;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2 * size, neighbors, weights, 2 * size, neighbors, weights,
                                 MPI_INFO_NULL, 0, &graph);
  for (int kind = 0; kind < KINDS; ++kind) report(names[kind], one_by_one(kind));
  for (int round = 0; round < 4; ++round) report("many at once", many(round));
  if (argc > 1) { /* what MPI does not allow, or not every library can */
    report("persistent", persistent());
    leave_behind();
  }
  MPI_Type_free(&every_other);
  MPI_Comm_free(&comm);
  MPI_Comm_free(&graph);
  return finish();
}
