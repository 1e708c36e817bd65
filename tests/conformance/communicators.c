/* SPDX-License-Identifier: BSD-3-Clause
 * The communicators: groups of several shapes, and topologies with neighbours in all awkward positions. */
#include "conformance.h"

enum { kMaxComms = 8 };
static Comm plain[kMaxComms], topologies[kMaxComms];
static int plain_count, topologies_count;

static Comm* add(const char* name, MPI_Comm handle, bool topology) {
  Comm* comm = topology ? &topologies[topologies_count++] : &plain[plain_count++];
  *comm = (Comm){.name = name, .handle = handle, .topology = topology};
  if (handle == MPI_COMM_NULL) return comm;
  MPI_Comm_rank(handle, &comm->rank);
  MPI_Comm_size(handle, &comm->size);
  return comm;
}

static void add_cart(const char* name, int dimensions, int* sizes, int periodic) {
  const int periods[2] = {periodic, periodic};
  MPI_Comm handle;
  MPI_Cart_create(MPI_COMM_WORLD, dimensions, sizes, periods, 0, &handle);
  Comm* comm = add(name, handle, true);
  if (handle == MPI_COMM_NULL) return;
  for (int d = 0; d < dimensions; ++d) {
    int below, above;
    MPI_Cart_shift(handle, d, 1, &below, &above);
    comm->sources[2 * d] = comm->destinations[2 * d] = below;
    comm->sources[2 * d + 1] = comm->destinations[2 * d + 1] = above;
  }
  comm->cart = true;
  comm->sources_count = comm->destinations_count = 2 * dimensions;
}

/* Every rank names both its neighbours twice: repeated edges, all of them meeting when there are two ranks or one. */
static void add_graph(int size) {
  int index[kMaxBlocks / 4], edges[kMaxBlocks];
  for (int i = 0; i < size; ++i) {
    const int next = (i + 1) % size, last = (i + size - 1) % size;
    const int neighbours[4] = {next, last, next, last};
    for (int e = 0; e < 4; ++e) edges[4 * i + e] = neighbours[e];
    index[i] = 4 * (i + 1);
  }
  MPI_Comm handle;
  MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &handle);
  Comm* comm = add("graph", handle, true);
  comm->sources_count = comm->destinations_count = 4;
  for (int e = 0; e < 4; ++e) comm->sources[e] = comm->destinations[e] = edges[4 * comm->rank + e];
}

/* Who sends to whom, and how often: mostly downwards, odd ranks to themselves, the first twice to the last. */
static int edges_between(int from, int to, int size) {
  if (from > to) return 1;
  if (from == to) return from % 2;
  return from == 0 && to == size - 1 ? 2 : 0;
}

static void add_dist_graph(int rank, int size) {
  int sources[kMaxBlocks], destinations[kMaxBlocks], in = 0, out = 0;
  for (int other = size - 1; other >= 0; --other)
    for (int n = 0; n < edges_between(other, rank, size); ++n) sources[in++] = other;
  for (int other = 0; other < size; ++other)
    for (int n = 0; n < edges_between(rank, other, size); ++n) destinations[out++] = other;
  MPI_Comm handle;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, sources, MPI_UNWEIGHTED, out, destinations, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &handle);
  Comm* comm = add("dist_graph", handle, true);
  comm->sources_count = in;
  comm->destinations_count = out;
  /* Asked, because the library may have put them in another order. */
  MPI_Dist_graph_neighbors(handle, in, comm->sources, MPI_UNWEIGHTED, out, comm->destinations, MPI_UNWEIGHTED);
}

Comm comm_duplicate(void) {
  Comm comm = {.name = "dup"};
  MPI_Comm_dup(MPI_COMM_WORLD, &comm.handle);
  MPI_Comm_rank(comm.handle, &comm.rank);
  MPI_Comm_size(comm.handle, &comm.size);
  return comm;
}

void communicators_create(void) {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm handle;
  add("world", MPI_COMM_WORLD, false);
  plain[plain_count++] = comm_duplicate();
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &handle);
  add("split", handle, false);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &handle);
  add("reversed", handle, false);
  MPI_Comm_dup(MPI_COMM_SELF, &handle);
  add("self", handle, false);
  int grid[2] = {0, 0};
  MPI_Dims_create(size, 2, grid);
  add_cart("ring", 1, (int[]){size}, 1);
  add_cart("ring_of_2", 1, (int[]){size < 2 ? 1 : 2}, 1);
  add_cart("ring_of_1", 1, (int[]){1}, 1);
  add_cart("grid", 2, grid, 0);
  add_graph(size);
  add_dist_graph(rank, size);
  for (int i = 0; i < plain_count; ++i) MPI_Comm_set_errhandler(plain[i].handle, MPI_ERRORS_RETURN);
  for (int i = 0; i < topologies_count; ++i)
    if (topologies[i].handle != MPI_COMM_NULL) MPI_Comm_set_errhandler(topologies[i].handle, MPI_ERRORS_RETURN);
}

void communicators_free(void) {
  for (int i = 1; i < plain_count; ++i) MPI_Comm_free(&plain[i].handle);
  for (int i = 0; i < topologies_count; ++i)
    if (topologies[i].handle != MPI_COMM_NULL) MPI_Comm_free(&topologies[i].handle);
}

int communicators_count(bool topology) { return topology ? topologies_count : plain_count; }

const Comm* communicator_at(bool topology, int index) { return topology ? &topologies[index] : &plain[index]; }
