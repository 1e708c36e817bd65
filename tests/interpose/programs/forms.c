/* SPDX-License-Identifier: BSD-3-Clause
 * Every collective in its forms, small: prints a hash of what all ranks received, which must be the native library's.
 * All forms print the same. Argument: nonblocking, persistent or blocking. The blocking forms are asked for on rank 0
 * only: what it says counts for all. */
#include "check.h"
#include "persistent_names.h"

#include <stdint.h>

enum { BLOCK = 300, NONBLOCKING = 0, PERSISTENT = 1, BLOCKING = 2 };

static MPI_Comm comm;
static int rank, size, form, *send, *recv, *counts, *displs, *own_counts, *own_displs;
static int total; /* ints in a buffer */
static MPI_Aint* places;
static MPI_Datatype* types;
static MPI_Request request;

static void fill(int round) {
  for (int i = 0; i < total; ++i) {
    send[i] = value_of(rank, i % 7, i, round) % 1000;
    recv[i] = value_of(rank, i % 5, i, round + 100) % 1000;
  }
}

static void show(const char* name) {
  uint64_t hash = 0xcbf29ce484222325u;
  int* all = rank == 0 ? malloc(sizeof(int) * (size_t)(total * size)) : NULL;
  MPI_Gather(recv, total, MPI_INT, all, total, MPI_INT, 0, comm);
  for (int i = 0; rank == 0 && i < total * size; ++i) hash = (hash ^ (uint64_t)all[i]) * 0x100000001b3u;
  if (rank == 0) printf("%s: %016llx\n", name, (unsigned long long)hash);
  free(all);
}

/* Twice, so that a persistent one is started again. */
#define EACH(Name, name, ...)                                                          \
  do {                                                                                 \
    if (form == PERSISTENT) INIT_OF(Name)(__VA_ARGS__, comm, MPI_INFO_NULL, &request); \
    for (int round = 0; round < 2; ++round) {                                          \
      fill(round);                                                                     \
      if (form == NONBLOCKING) MPI_I##name(__VA_ARGS__, comm, &request);               \
      if (form == PERSISTENT) MPI_Start(&request);                                     \
      if (form == BLOCKING) MPI_##Name(__VA_ARGS__, comm);                             \
      if (form != BLOCKING) MPI_Wait(&request, MPI_STATUS_IGNORE);                     \
      show(#name);                                                                     \
    }                                                                                  \
    if (form == PERSISTENT) MPI_Request_free(&request);                                \
  } while (0)

static void barrier(void) {
  if (form == NONBLOCKING) MPI_Ibarrier(comm, &request);
  if (form == PERSISTENT) INIT_OF(Barrier)(comm, MPI_INFO_NULL, &request), MPI_Start(&request);
  if (form == BLOCKING)
    MPI_Barrier(comm);
  else
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (form == PERSISTENT) MPI_Request_free(&request);
}

static void moving(void) {
  const int last = size - 1;
  EACH(Bcast, bcast, recv, BLOCK, MPI_INT, last);
  EACH(Gather, gather, send, BLOCK, MPI_INT, recv, BLOCK, MPI_INT, last);
  EACH(Gather, gather, rank == 0 ? MPI_IN_PLACE : send, BLOCK, MPI_INT, recv, BLOCK, MPI_INT, 0);
  EACH(Gatherv, gatherv, send, counts[rank], MPI_INT, recv, counts, displs, MPI_INT, last);
  EACH(Scatter, scatter, send, BLOCK, MPI_INT, recv, BLOCK, MPI_INT, last);
  EACH(Scatter, scatter, send, BLOCK, MPI_INT, rank == 0 ? MPI_IN_PLACE : recv, BLOCK, MPI_INT, 0);
  EACH(Scatterv, scatterv, send, counts, displs, MPI_INT, recv, counts[rank], MPI_INT, last);
  EACH(Allgather, allgather, send, BLOCK, MPI_INT, recv, BLOCK, MPI_INT);
  EACH(Allgather, allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, BLOCK, MPI_INT);
  EACH(Allgatherv, allgatherv, send, counts[rank], MPI_INT, recv, counts, displs, MPI_INT);
  EACH(Alltoall, alltoall, send, BLOCK, MPI_INT, recv, BLOCK, MPI_INT);
  EACH(Alltoall, alltoall, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, BLOCK, MPI_INT);
  EACH(Alltoallv, alltoallv, send, own_counts, displs, MPI_INT, recv, counts, displs, MPI_INT);
  EACH(Alltoallw, alltoallw, send, own_counts, own_displs, types, recv, counts, own_displs, types);
}

static void combining(void) {
  const int last = size - 1;
  EACH(Reduce, reduce, send, recv, BLOCK, MPI_INT, MPI_SUM, last);
  EACH(Reduce, reduce, rank == 0 ? MPI_IN_PLACE : recv, recv, BLOCK, MPI_INT, MPI_MAX, 0);
  EACH(Allreduce, allreduce, send, recv, BLOCK, MPI_INT, MPI_BXOR);
  EACH(Allreduce, allreduce, MPI_IN_PLACE, recv, BLOCK, MPI_INT, MPI_SUM);
  EACH(Reduce_scatter, reduce_scatter, send, recv, counts, MPI_INT, MPI_SUM);
  EACH(Reduce_scatter_block, reduce_scatter_block, send, recv, BLOCK, MPI_INT, MPI_MIN);
  EACH(Scan, scan, send, recv, BLOCK, MPI_INT, MPI_SUM);
  EACH(Scan, scan, MPI_IN_PLACE, recv, BLOCK, MPI_INT, MPI_SUM);
  EACH(Exscan, exscan, send, recv, BLOCK, MPI_INT, MPI_MAX);
}

/* A ring: counts[0] from the left, counts[1] from the right; the same amounts arrive as leave. */
static void neighboring(void) {
  int even[2] = {BLOCK / 2, BLOCK / 2}, at[2] = {0, BLOCK};
  MPI_Datatype two[2] = {MPI_INT, MPI_INT};
  EACH(Neighbor_allgather, neighbor_allgather, send, BLOCK, MPI_INT, recv, BLOCK, MPI_INT);
  EACH(Neighbor_allgatherv, neighbor_allgatherv, send, BLOCK / 2, MPI_INT, recv, even, at, MPI_INT);
  EACH(Neighbor_alltoall, neighbor_alltoall, send, BLOCK, MPI_INT, recv, BLOCK, MPI_INT);
  EACH(Neighbor_alltoallv, neighbor_alltoallv, send, even, at, MPI_INT, recv, even, at, MPI_INT);
  EACH(Neighbor_alltoallw, neighbor_alltoallw, send, even, places, two, recv, even, places, two);
}

int main(int argc, char** argv) {
  static const char* const names[] = {"nonblocking", "persistent", "blocking"};
  while (form < 2 && strcmp(argv[1], names[form]) != 0) ++form;
  const char* place = getenv("OMPI_COMM_WORLD_RANK") != NULL ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
  if (form == BLOCKING) setenv("OFFPATH_MPI_BLOCKING", place != NULL && atoi(place) == 0 ? "all" : "none", 1);
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int ring = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &ring, 0, &comm);
  MPI_Comm_rank(comm, &rank);
  total = BLOCK * (size + 1);
  send = malloc(sizeof(int) * (size_t)total);
  recv = malloc(sizeof(int) * (size_t)total);
  counts = calloc((size_t)size * 4, sizeof(int));
  displs = counts + size, own_counts = counts + 2 * size, own_displs = counts + 3 * size;
  places = calloc((size_t)size, sizeof(MPI_Aint));
  types = malloc(sizeof(MPI_Datatype) * (size_t)size);
  for (int p = 0; p < size; ++p) {
    counts[p] = BLOCK / 2 + 10 * p; /* what member p gives everybody */
    own_counts[p] = BLOCK / 2 + 10 * rank;
    displs[p] = BLOCK * p + p % 3;
    own_displs[p] = (int)sizeof(int) * displs[p];
    types[p] = MPI_INT;
  }
  places[1] = BLOCK * (MPI_Aint)sizeof(int);
  barrier();
  moving();
  combining();
  neighboring();
  MPI_Comm_free(&comm);
  free(send), free(recv), free(counts), free(places), free(types);
  return finish();
}
