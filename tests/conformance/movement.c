/* SPDX-License-Identifier: BSD-3-Clause
 * Operations that move data: who has which block before and after. Every block's bytes are a function of the case's
 * seed, the ranks it goes from and to, and which of the blocks between these two it is. */
#include "conformance.h"

#include <string.h>

static const Data kNone = {false, 0, 0, 0};

static Data between(int from, int to, int nth) { return (Data){true, from, to, nth}; }

static bool is_varying(enum Operation op) {
  return op == kGatherv || op == kScatterv || op == kAllgatherv || op == kAlltoallv || op == kAlltoallw ||
         op == kNeighbor_allgatherv || op == kNeighbor_alltoallv || op == kNeighbor_alltoallw;
}

static int units_of(const Case* c, Data data) {
  if (!is_varying(c->op) || !data.any) return c->units;
  const int weight =
      c->in_place ? data.a + data.b : 2 * data.a + 3 * data.b + data.c; /* in place: the same both ways */
  return c->units * (weight % 4) / 3;
}

/* For the typed operations every pair of ranks has its own two types. */
static const Type* type_of(const Case* c, Data data, bool send) {
  const Type* type = send ? c->pair.send : c->pair.recv;
  if (!is_typed(c->op) || !data.any) return type;
  const Family* family = c->pair.family;
  const int weight = c->in_place ? data.a + data.b : data.a + 2 * data.b;
  return &family->types[(type - family->types + weight) % family->count];
}

static int count_of(const Case* c, Data data, const Type* type) {
  /* In place only the receiving type is used, at both ends. */
  const Type* send = type_of(c, data, !(c->in_place && c->op >= kAlltoall));
  return units_of(c, data) * (least_common_multiple(send->items, type_of(c, data, false)->items) / type->items);
}

static void add_send(Case* c, Data data) {
  const Type* type = type_of(c, data, true);
  side_add(&c->send, type, count_of(c, data, type), data, kNone);
}

static void add_recv(Case* c, Data before, Data after) {
  const Type* type = type_of(c, after, false);
  side_add(&c->recv, type, count_of(c, after, type), before, after);
}

static int repeats_of(const int* peers, int count, int index) {
  int repeats = 0;
  for (int i = 0; i < count; ++i) repeats += peers[i] == peers[index];
  return repeats;
}

static int nth_of(const int* peers, int index) {
  int nth = 0;
  for (int i = 0; i < index; ++i) nth += peers[i] == peers[index];
  return nth;
}

static void describe_neighbours(Case* c) {
  const Comm* comm = c->comm;
  const bool all_the_same = c->op == kNeighbor_allgather || c->op == kNeighbor_allgatherv;
  if (all_the_same) add_send(c, between(comm->rank, 0, 0));
  for (int i = 0; !all_the_same && i < comm->destinations_count; ++i) {
    const int to = comm->destinations[i];
    add_send(c, to == MPI_PROC_NULL ? kNone : between(comm->rank, to, nth_of(comm->destinations, i)));
  }
  for (int i = 0; i < comm->sources_count; ++i) {
    const int from = comm->sources[i];
    int nth = nth_of(comm->sources, i);
    if (repeats_are_reversed(c)) nth = repeats_of(comm->sources, comm->sources_count, i) - 1 - nth;
    const Data data = all_the_same ? between(from, 0, 0) : between(from, comm->rank, nth);
    add_recv(c, kNone, from == MPI_PROC_NULL ? kNone : data);
  }
}

static void describe_bcast(Case* c) {
  const Data data = between(c->root, 0, 0);
  const Type* type = type_of(c, data, c->comm->rank == c->root);
  side_add(&c->recv, type, count_of(c, data, type), c->comm->rank == c->root ? data : kNone, data);
}

static void describe_rooted(Case* c) {
  const int me = c->comm->rank;
  const bool root = me == c->root, kept = root && c->in_place;
  if (c->op == kGather || c->op == kGatherv) {
    if (!kept) add_send(c, between(me, c->root, 0));
    for (int i = 0; root && i < c->comm->size; ++i)
      add_recv(c, kept && i == me ? between(me, me, 0) : kNone, between(i, c->root, 0));
  } else {
    for (int i = 0; root && i < c->comm->size; ++i) add_send(c, between(c->root, i, 0));
    if (!kept) add_recv(c, kNone, between(c->root, me, 0));
  }
}

static void describe_all(Case* c) {
  const int me = c->comm->rank;
  const bool gather = c->op == kAllgather || c->op == kAllgatherv;
  if (gather && !c->in_place) add_send(c, between(me, 0, 0));
  for (int i = 0; i < c->comm->size; ++i) {
    if (gather) {
      add_recv(c, c->in_place && i == me ? between(me, 0, 0) : kNone, between(i, 0, 0));
    } else {
      if (!c->in_place) add_send(c, between(me, i, 0));
      add_recv(c, c->in_place ? between(me, i, 0) : kNone, between(i, me, 0));
    }
  }
}

MPI_Aint movement_unit_bytes(const Case* c) {
  int items = least_common_multiple(c->pair.send->items, c->pair.recv->items);
  for (int i = 0; is_typed(c->op) && i < c->pair.family->count; ++i)
    items = least_common_multiple(items, c->pair.family->types[i].items);
  return items * (c->pair.send->bytes / c->pair.send->items);
}

void movement_describe(Case* c) {
  if (c->op == kBcast) {
    describe_bcast(c);
  } else if (is_rooted(c->op)) {
    describe_rooted(c);
  } else if (is_neighbor(c->op)) {
    describe_neighbours(c);
  } else if (c->op != kBarrier) {
    describe_all(c);
  }
  const enum Placing placing = is_typed(c->op) ? kPlaceTyped : is_varying(c->op) ? kPlaceVarying : kPlaceUniform;
  side_place(&c->send, placing);
  side_place(&c->recv, placing);
}

void movement_data(const Case* c, const Block* block, Data data, unsigned char* packed) {
  const size_t bytes = (size_t)(block->count * block->type->bytes);
  const uint64_t key = mix(c->seed ^ mix((uint64_t)data.a << 40 | (uint64_t)data.b << 20 | (uint64_t)data.c));
  for (size_t at = 0; at < bytes; at += 8) {
    const uint64_t word = mix(key + at);
    memcpy(packed + at, &word, bytes - at < 8 ? bytes - at : 8);
  }
}
