/* SPDX-License-Identifier: BSD-3-Clause
 * Reproducible numbers, and the random program made of them. */
#include "conformance.h"

#include <stdio.h>

/* The finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

uint64_t random_next(Random* random) { return mix(random->state++); }

int random_below(Random* random, int bound) { return (int)(random_next(random) % (uint64_t)bound); }

static int random_units(Random* random) {
  static const int kLimits[] = {1, 4, 40, 400, 20000};
  return random_below(random, kLimits[random_below(random, 5)] + 1);
}

static Case random_case(Random* random, enum Form form) {
  Case one = {.op = (enum Operation)random_below(random, kOperationsCount), .form = form};
  const bool topology = is_neighbor(one.op);
  one.comm = communicator_at(topology, random_below(random, communicators_count(topology)));
  one.pair = type_pair(random_below(random, type_pairs_count()));
  one.reduction = reduction_at(random_below(random, reductions_count()));
  one.units = random_units(random);
  if (one.units * case_unit_bytes(&one) > 200000) one.units = (int)(200000 / case_unit_bytes(&one));
  one.root = random_below(random, 1 << 20); /* modulo the communicator's size */
  one.in_place = random_below(random, 3) == 0;
  one.seed = random_next(random);
  return one;
}

int random_run(enum Form form, uint64_t seed, int steps, const char* match) {
  Random random = {mix(seed)};
  Report report = {.match = match};
  int wrong = 0;
  for (int step = 0; step < steps;) {
    static Case cases[kMaxBatch];
    int count = 1 + random_below(&random, kMaxBatch);
    if (count > steps - step) count = steps - step;
    for (int i = 0; i < count; ++i) cases[i] = random_case(&random, form);
    const enum Style style = (enum Style)random_below(&random, kStylesCount);
    const int rounds = form == kPersistent ? 1 + random_below(&random, 3) : 1;
    batch_run(cases, count, style, rounds, &report);
    step += count;
    wrong += report_flush(&report);
  }
  return wrong;
}
