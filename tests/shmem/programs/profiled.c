/* SPDX-License-Identifier: BSD-3-Clause
 * A tool in the program: some functions are its own, which count and call the library by the names that are for this. */
#include "check.h"

#include <pshmem.h>

enum { ROUNDS = 50, WORDS = 20000 };
static long calls, counter, words[WORDS], mine[WORDS];

void shmem_init(void) {
  ++calls;
  pshmem_init();
}

void shmem_barrier_all(void) {
  ++calls;
  pshmem_barrier_all();
}

long shmem_long_atomic_fetch_add(long* target, long value, int pe) {
  ++calls;
  return pshmem_long_atomic_fetch_add(target, value, pe);
}

void shmem_finalize(void) {
  printf("PE %d: %s\n", me, calls > ROUNDS ? "counted" : "MISSED"); /* in any order */
  pshmem_finalize();
}

int main(void) {
  begin();
  const int right = (me + 1) % pes, left = (me + pes - 1) % pes;
  int ok = 1;
  for (long round = 1; round <= ROUNDS; ++round) {
    for (int i = 0; i < WORDS; ++i) mine[i] = me * 1000000l + round * 10000 + i;
    shmem_long_put_nbi(words, mine, WORDS, right);
    shmem_long_atomic_inc(&counter, 0);
    shmem_long_atomic_fetch_add(&counter, 1, 0);
    shmem_barrier_all();
    for (int i = 0; i < WORDS; ++i) ok &= words[i] == left * 1000000l + round * 10000 + i;
    shmem_barrier_all();
  }
  report("barriers of a tool", ok);
  report("atomics of a tool", shmem_long_g(&counter, 0) == 2l * ROUNDS * pes);
  return finish();
}
