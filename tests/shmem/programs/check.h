/* SPDX-License-Identifier: BSD-3-Clause
 * Shared by the test programs: every PE checks its own data, PE 0 prints one line per check, in order, so that native
 * and preloaded runs must print the same. The exit status says whether all were right. */
#ifndef OFFPATH_TESTS_SHMEM_CHECK_H
#define OFFPATH_TESTS_SHMEM_CHECK_H

#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failures;
static int me, pes;

static inline void begin(void) {
  shmem_init();
  me = shmem_my_pe();
  pes = shmem_n_pes();
}

/* Collective. */
static inline void report(const char* name, int ok) {
  static int mine, all, work[SHMEM_REDUCE_MIN_WRKDATA_SIZE > 1 ? SHMEM_REDUCE_MIN_WRKDATA_SIZE : 1];
  static long sync[SHMEM_REDUCE_SYNC_SIZE];
  for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; ++i) sync[i] = SHMEM_SYNC_VALUE;
  mine = ok;
  if (!ok) fprintf(stderr, "PE %d: %s is wrong\n", me, name);
  shmem_barrier_all();
  shmem_int_min_to_all(&all, &mine, 1, 0, 0, pes, work, sync);
  shmem_barrier_all();
  if (!all) ++check_failures;
  if (me == 0) {
    printf("%s: %s\n", name, all ? "ok" : "WRONG");
    fflush(stdout);
  }
}

static inline int finish(void) {
  shmem_finalize();
  return check_failures == 0 ? 0 : 1;
}

/* Reproducible numbers: SplitMix64 (Steele, Lea, Flood 2014). */
static inline uint64_t next_random(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

#endif
