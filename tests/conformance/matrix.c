/* SPDX-License-Identifier: BSD-3-Clause
 * The full product of operations and arguments, walked in steps of `every`: a number that is prime to all factors, so
 * that a thinned walk still meets every value of every argument. */
#include "conformance.h"

enum { kAmounts = 4 };

typedef struct Walk {
  enum Form form;
  int every;
  uint64_t number, seed;
  Case batch[kMaxBatch];
  int batch_count;
  Report report;
  int wrong;
} Walk;

/* One decimal place of a mixed-radix number. */
static int take(uint64_t* index, int radix) {
  const int digit = (int)(*index % (uint64_t)radix);
  *index /= (uint64_t)radix;
  return digit;
}

static void flush_batch(Walk* walk) {
  const enum Style style = (enum Style)(mix(walk->number) % kStylesCount);
  batch_run(walk->batch, walk->batch_count, style, walk->form == kPersistent ? 2 : 1, &walk->report);
  walk->batch_count = 0;
}

/* Batches have 1 to 8 cases. */
static void add_case(Walk* walk, Case one) {
  one.seed = mix(walk->seed ^ mix(walk->number));
  walk->batch[walk->batch_count++] = one;
  if (walk->batch_count == 8 || mix(walk->number) % 4 == 0) flush_batch(walk);
}

static int units_for(int amount, MPI_Aint unit_bytes, uint64_t number) {
  const MPI_Aint large = number % 8 == 0 ? 400000 : 50000; /* bytes */
  const int amounts[kAmounts] = {1, 3, 0, (int)(large / unit_bytes) + 1};
  return amounts[amount];
}

static void walk_operation(Walk* walk, enum Operation op) {
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const bool topology = is_neighbor(op);
  const int comms = communicators_count(topology), roots = is_rooted(op) ? size : 1;
  const int places = may_be_in_place(op) ? 2 : 1, amounts = op == kBarrier ? 1 : kAmounts;
  const int kinds = op == kBarrier ? 1 : is_reduction(op) ? reductions_count() : type_pairs_count();
  const uint64_t cases = (uint64_t)comms * (uint64_t)roots * (uint64_t)places * (uint64_t)amounts * (uint64_t)kinds;
  for (uint64_t at = walk->number++ % (uint64_t)walk->every; at < cases; at += (uint64_t)walk->every, ++walk->number) {
    uint64_t rest = at;
    Case one = {.op = op, .form = walk->form, .comm = communicator_at(topology, take(&rest, comms))};
    one.in_place = take(&rest, places) == 1;
    const int amount = take(&rest, amounts);
    const int kind = take(&rest, kinds);
    one.root = take(&rest, roots);
    one.pair = type_pair(is_reduction(op) ? 0 : kind);
    one.reduction = reduction_at(is_reduction(op) ? kind : 0);
    one.units = units_for(amount, case_unit_bytes(&one), walk->number);
    add_case(walk, one);
  }
  flush_batch(walk);
  walk->wrong += report_flush(&walk->report);
}

int matrix_run(enum Form form, int every, uint64_t seed, const char* match) {
  static Walk walk;
  walk.form = form;
  walk.every = every;
  walk.seed = seed;
  walk.report.match = match;
  for (int op = 0; op < kOperationsCount; ++op) walk_operation(&walk, (enum Operation)op);
  return walk.wrong;
}
