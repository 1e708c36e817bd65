/* SPDX-License-Identifier: BSD-3-Clause
 * Reductions: a block holds the combination of ranks a .. b, from element c on. */
#include "conformance.h"

static const Data kNone = {false, 0, 0, 0};

static Data combined(int first, int last, int start) { return (Data){true, first, last, start}; }

static int share_of(const Case* c, int rank) {
  return c->op == kReduce_scatter ? c->units * ((rank * 3 + c->units) % 4) / 2 : c->units;
}

static void describe_reduce_scatter(Case* c) {
  const int me = c->comm->rank, last = c->comm->size - 1;
  const Type* type = &c->reduction->type;
  int total = 0, start = 0;
  for (int rank = 0; rank <= last; ++rank) {
    c->send.counts[rank] = share_of(c, rank);
    if (rank < me) start += share_of(c, rank);
    total += share_of(c, rank);
  }
  const int own = share_of(c, me);
  if (!c->in_place) side_add(&c->send, type, total, combined(me, me, 0), kNone);
  side_add(&c->recv, type, own, c->in_place ? combined(me, me, 0) : kNone, combined(0, last, start));
  if (c->in_place) side_add(&c->recv, type, total - own, combined(me, me, own), kNone)->undefined = true;
}

void reduction_describe(Case* c) {
  const int me = c->comm->rank, last = c->comm->size - 1;
  const Type* type = &c->reduction->type;
  const Data own = combined(me, me, 0), before = c->in_place ? own : kNone;
  int counts[kMaxBlocks];
  if (c->op == kReduce_scatter || c->op == kReduce_scatter_block) {
    describe_reduce_scatter(c);
    for (int i = 0; i <= last; ++i) counts[i] = c->send.counts[i];
  } else {
    const bool receives = c->op != kReduce || me == c->root;
    if (!c->in_place || !receives) side_add(&c->send, type, c->units, own, kNone);
    if (receives) {
      const bool all = c->op == kReduce || c->op == kAllreduce;
      const int until = all ? last : c->op == kScan ? me : me - 1;
      side_add(&c->recv, type, c->units, before, until < 0 ? kNone : combined(0, until, 0));
    }
  }
  side_place(&c->send, kPlaceUniform);
  side_place(&c->recv, kPlaceUniform);
  if (c->op == kReduce_scatter) {
    for (int i = 0; i <= last; ++i) c->send.counts[i] = counts[i];
  }
}
