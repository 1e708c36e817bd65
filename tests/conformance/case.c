/* SPDX-License-Identifier: BSD-3-Clause
 * One call of one operation: its name, its memory, and which calls are known to go wrong without Offpath. */
#include "conformance.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char* const kNames[3][kOperationsCount] = {
    {
#define X(Name, name) "I" #name,
        OPERATIONS(X)
#undef X
    },
    {
#define X(Name, name) #Name "_init",
        OPERATIONS(X)
#undef X
    },
    {
#define X(Name, name) #Name,
        OPERATIONS(X)
#undef X
    },
};

/* The root is part of the name as the ranks of a split communicator know it: not yet reduced by its size. */
static void name_case(Case* c) {
  int at = snprintf(c->name, kNameBytes, "%s %s", kNames[c->form][c->op], c->comm->name);
  char* end = c->name;
  if (is_reduction(c->op))
    at += snprintf(end + at, (size_t)(kNameBytes - at), " %s %s", c->reduction->type.name, c->reduction->op_name);
  else if (c->op != kBarrier)
    at += snprintf(end + at, (size_t)(kNameBytes - at), " %s>%s", c->pair.send->name, c->pair.recv->name);
  if (c->op != kBarrier) at += snprintf(end + at, (size_t)(kNameBytes - at), " x%d", c->units);
  if (is_rooted(c->op)) at += snprintf(end + at, (size_t)(kNameBytes - at), " root %d", c->root);
  if (c->in_place) snprintf(end + at, (size_t)(kNameBytes - at), " in place");
}

void case_describe(Case* c) {
  c->in_place = c->in_place && may_be_in_place(c->op);
  c->send.blocks_count = c->recv.blocks_count = 0;
  c->request = MPI_REQUEST_NULL;
  c->status = MPI_SUCCESS;
  if (is_rooted(c->op)) c->root %= kMaxBlocks;
  name_case(c);
  if (c->comm->handle == MPI_COMM_NULL) return;
  c->root %= c->comm->size;
  if (is_reduction(c->op)) {
    reduction_describe(c);
  } else {
    movement_describe(c);
  }
  side_allocate(&c->send);
  side_allocate(&c->recv);
}

MPI_Aint case_unit_bytes(const Case* c) {
  return is_reduction(c->op) ? c->reduction->type.bytes : movement_unit_bytes(c);
}

void case_fill(Case* c, uint64_t seed) {
  if (c->comm->handle == MPI_COMM_NULL) return;
  c->seed = seed;
  side_fill(&c->send, c);
  side_fill(&c->recv, c);
}

void case_data(const Case* c, const Block* block, Data data, unsigned char* packed) {
  if (is_reduction(c->op)) {
    reduction_values(c->reduction, c->seed, data.a, data.b, data.c, block->count, packed);
  } else {
    movement_data(c, block, data, packed);
  }
}

void case_call(Case* c) {
  if (c->comm->handle != MPI_COMM_NULL) c->status = call_operation(c);
}

bool case_check(Case* c, uint64_t* hash) {
  *hash = 0;
  if (c->comm->handle == MPI_COMM_NULL) return true;
  if (c->status != MPI_SUCCESS) return false;
  uint64_t ignored = 0;
  const bool kept = side_check(&c->send, c->name, &ignored);
  return side_check(&c->recv, c->name, hash) && kept;
}

void case_free(Case* c) {
  if (c->request != MPI_REQUEST_NULL) MPI_Request_free(&c->request);
  if (c->comm->handle == MPI_COMM_NULL) return;
  side_free(&c->send);
  side_free(&c->recv);
}
