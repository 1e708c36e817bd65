/* SPDX-License-Identifier: BSD-3-Clause
 * Random operations against a model. All PEs draw the same numbers, so each knows what all of them do; in a round no
 * two touch the same element, and each PE compares its memory with the model after the barrier.
 * Usage: random [seed [rounds]] */
#include "check.h"

enum { CELLS = 4096, PART = 512 }; /* PE p writes into cells [p * PART, (p + 1) * PART) of any PE, for p < 8 */

static long cells_static[CELLS];

int main(int argc, char** argv) {
  begin();
  uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20260801;
  const int rounds = argc > 2 ? atoi(argv[2]) : 60;
  if (me == 0) printf("seed %llu\n", (unsigned long long)seed);
  long* cells_heap = shmem_calloc(CELLS, sizeof(long));
  long* model = calloc((size_t)pes * 2 * CELLS, sizeof(long)); /* [pe][place][cell] */
  long source[PART], fetched[PART];
  int ok = 1;
  shmem_barrier_all();
  for (int round = 0; round < rounds; ++round) {
    for (int origin = 0; origin < pes; ++origin) {
      for (int turn = 0; turn < 8; ++turn) {
        const int target = (int)(next_random(&seed) % (uint64_t)pes), place = (int)(next_random(&seed) % 2);
        const int kind = (int)(next_random(&seed) % 7), stride = 1 + (int)(next_random(&seed) % 4);
        const int first = turn * (PART / 8) + (int)(next_random(&seed) % 8);
        const int count = 1 + (int)(next_random(&seed) % 8) * (kind < 2 ? 6 : 1);
        const long value = (long)(next_random(&seed) >> 16);
        long* here = (place ? cells_static : cells_heap) + origin * PART + first;
        long* expected = model + ((size_t)target * 2 + (size_t)place) * CELLS + origin * PART + first;
        const int mine = origin == me;
        for (int i = 0; i < PART; ++i) source[i] = value + i;
        switch (kind) {
          case 0:
            if (mine) shmem_long_put(here, source, (size_t)count, target);
            for (int i = 0; i < count; ++i) expected[i] = source[i];
            break;
          case 1:
            if (mine) shmem_putmem(here, source, (size_t)count * sizeof(long), target);
            for (int i = 0; i < count; ++i) expected[i] = source[i];
            break;
          case 2:
            if (mine) shmem_long_iput(here, source, stride, 2, (size_t)count, target);
            for (int i = 0; i < count; ++i) expected[i * stride] = source[2 * i];
            break;
          case 3:
            if (mine) shmem_long_p(here, value, target);
            expected[0] = value;
            break;
          case 4:
            if (mine) ok &= shmem_long_atomic_fetch_add(here, value, target) == expected[0];
            expected[0] += value;
            break;
          case 5:
            if (mine) ok &= shmem_long_atomic_swap(here, value, target) == expected[0];
            expected[0] = value;
            break;
          default:
            if (mine) {
              shmem_long_iget(fetched, here, 1, stride, (size_t)count, target);
              for (int i = 0; i < count; ++i) ok &= fetched[i] == expected[i * stride];
            }
        }
        if (mine) shmem_quiet();
      }
    }
    shmem_barrier_all();
    const long* own = model + (size_t)me * 2 * CELLS;
    ok &= memcmp(cells_heap, own, sizeof(cells_static)) == 0 &&
          memcmp(cells_static, own + CELLS, sizeof(cells_static)) == 0;
    shmem_barrier_all();
  }
  report("random", ok);
  free(model);
  shmem_free(cells_heap);
  return finish();
}
