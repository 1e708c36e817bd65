/* SPDX-License-Identifier: BSD-3-Clause
 * A case as the MPI call it stands for. Arguments that MPI says are not significant are given as nothing. */
#include "conformance.h"

#if defined(OPEN_MPI) && !defined(OFFPATH_MPI_HAS_PERSISTENT)
#define INITIALISE(Name) MPIX_##Name##_init
#else
#define INITIALISE(Name) MPI_##Name##_init
#endif

#define CALL(Name, name, ...)                                               \
  case k##Name:                                                             \
    if (form == kNonblocking) return MPI_I##name(__VA_ARGS__, &c->request); \
    if (form == kBlocking) return MPI_##Name(__VA_ARGS__);                  \
    return INITIALISE(Name)(__VA_ARGS__, MPI_INFO_NULL, &c->request);

static MPI_Datatype first_type(const Side* side, MPI_Datatype otherwise) {
  return side->blocks_count == 0 ? otherwise : side->types[0];
}

static int first_count(const Side* side) { return side->blocks_count == 0 ? 0 : side->counts[0]; }

int call_operation(Case* c) {
  Side *s = &c->send, *r = &c->recv;
  const enum Form form = c->form;
  const MPI_Comm comm = c->comm->handle;
  const bool root = c->comm->rank == c->root;
  const bool scatter = c->op == kScatter || c->op == kScatterv;
  const void* from = c->in_place && !scatter && (root || !is_rooted(c->op)) ? MPI_IN_PLACE : s->base;
  void* to = c->in_place && scatter && root ? MPI_IN_PLACE : r->base;
  if (is_rooted(c->op) && !root && scatter) from = NULL;
  if (is_rooted(c->op) && !root && !scatter && c->op != kBcast) to = NULL;
  /* A side without blocks: in place or not significant; a neighbourhood without neighbours needs a type all the same.
   */
  const MPI_Datatype none = is_neighbor(c->op) || c->in_place ? MPI_BYTE : MPI_DATATYPE_NULL;
  const MPI_Datatype st = first_type(s, none), rt = first_type(r, none);
  const int sn = first_count(s), rn = first_count(r);
  MPI_Datatype element = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  if (is_reduction(c->op)) element = c->reduction->type.handle, op = c->reduction->op;
  switch (c->op) {
    case kBarrier:
      if (form == kNonblocking) return MPI_Ibarrier(comm, &c->request);
      return form == kBlocking ? MPI_Barrier(comm) : INITIALISE(Barrier)(comm, MPI_INFO_NULL, &c->request);
      CALL(Bcast, bcast, r->base, rn, rt, c->root, comm)
      CALL(Gather, gather, from, sn, st, to, rn, rt, c->root, comm)
      CALL(Gatherv, gatherv, from, sn, st, to, r->counts, r->displacements, rt, c->root, comm)
      CALL(Scatter, scatter, from, sn, st, to, rn, rt, c->root, comm)
      CALL(Scatterv, scatterv, from, s->counts, s->displacements, st, to, rn, rt, c->root, comm)
      CALL(Allgather, allgather, from, sn, st, to, rn, rt, comm)
      CALL(Allgatherv, allgatherv, from, sn, st, to, r->counts, r->displacements, rt, comm)
      CALL(Alltoall, alltoall, from, sn, st, to, rn, rt, comm)
      CALL(Alltoallv, alltoallv, from, s->counts, s->displacements, st, to, r->counts, r->displacements, rt, comm)
      CALL(Alltoallw, alltoallw, from, s->counts, s->displacements, s->types, to, r->counts, r->displacements, r->types,
           comm)
      CALL(Neighbor_allgather, neighbor_allgather, from, sn, st, to, rn, rt, comm)
      CALL(Neighbor_allgatherv, neighbor_allgatherv, from, sn, st, to, r->counts, r->displacements, rt, comm)
      CALL(Neighbor_alltoall, neighbor_alltoall, from, sn, st, to, rn, rt, comm)
      CALL(Neighbor_alltoallv, neighbor_alltoallv, from, s->counts, s->displacements, st, to, r->counts,
           r->displacements, rt, comm)
      CALL(Neighbor_alltoallw, neighbor_alltoallw, from, s->counts, s->addresses, s->types, to, r->counts, r->addresses,
           r->types, comm)
      CALL(Reduce, reduce, from, to, c->units, element, op, c->root, comm)
      CALL(Allreduce, allreduce, from, to, c->units, element, op, comm)
      CALL(Reduce_scatter, reduce_scatter, from, to, s->counts, element, op, comm)
      CALL(Reduce_scatter_block, reduce_scatter_block, from, to, c->units, element, op, comm)
      CALL(Scan, scan, from, to, c->units, element, op, comm)
      CALL(Exscan, exscan, from, to, c->units, element, op, comm)
    default:
      return MPI_ERR_OTHER;
  }
}
