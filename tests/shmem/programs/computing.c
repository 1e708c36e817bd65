/* SPDX-License-Identifier: BSD-3-Clause
 * PE 0 computes and looks at its own memory, without one call of OpenSHMEM, until the others are done with it: they
 * put, get and do atomics meanwhile. */
#include "check.h"

#include <sched.h>

enum { COUNT = 100000, ROUNDS = 10000 };
static long done, sum, first, second;

/* The second of two short puts arrives, too, while who has posted it computes. Its service may just have gone to sleep. */
static void post_and_compute(void) {
  const int right = (me + 1) % pes;
  for (long round = 1; round <= ROUNDS; ++round) {
    shmem_long_p(&first, round, right);
    for (volatile long i = 0; i < round * 37 % 1000 * 10; ++i) continue;
    shmem_long_p(&second, round, right);
    while (*(volatile long*)&second < round) sched_yield();
  }
}

int main(void) {
  begin();
  long* data = shmem_malloc(COUNT * sizeof(long) * (size_t)pes);
  long* back = malloc(COUNT * sizeof(long));
  shmem_barrier_all();
  int ok = 1;
  if (me == 0) {
    while (*(volatile long*)&done != pes - 1) continue;
    ok &= sum == (long)pes * (pes - 1) / 2;
    for (int pe = 1; pe < pes; ++pe) {
      for (long i = 0; i < COUNT; ++i) ok &= data[pe * COUNT + i] == pe * i;
    }
  } else {
    long* mine = malloc(COUNT * sizeof(long));
    for (long i = 0; i < COUNT; ++i) mine[i] = me * i;
    shmem_long_put(data + me * COUNT, mine, COUNT, 0);
    shmem_quiet();
    shmem_long_get(back, data + me * COUNT, COUNT, 0);
    ok &= memcmp(back, mine, COUNT * sizeof(long)) == 0;
    shmem_long_iget(back, data + me * COUNT, 1, 2, COUNT / 2, 0);
    for (long i = 0; i < COUNT / 2; ++i) ok &= back[i] == mine[2 * i];
    ok &= shmem_long_atomic_fetch_add(&sum, me, 0) >= 0;
    shmem_quiet();
    shmem_long_atomic_inc(&done, 0);
    shmem_quiet();
    free(mine);
  }
  report("target that computes", ok);
  post_and_compute();
  report("origin that computes", 1);
  free(back);
  shmem_free(data);
  return finish();
}
