/* SPDX-License-Identifier: BSD-3-Clause
 * What orders and completes: fence, quiet, barriers, the heap's functions, locks, wait_until and test of every type. */
#include "check.h"

#include <sched.h>
#include <shmemx.h>

enum { WORDS = 5000, ROUNDS = 20 };
static long static_flag, sync_words[SHMEM_BARRIER_SYNC_SIZE];
static long lock, guarded, locks[10];

/* Data, then a flag, from the left neighbour: whoever sees the flag sees the data. */
static int data_then_flag(long* data, long* flag, int how) {
  const int right = (me + 1) % pes, left = (me + pes - 1) % pes;
  static long mine[WORDS];
  int ok = 1;
  *flag = 0;
  shmem_barrier_all();
  for (long round = 1; round <= ROUNDS; ++round) {
    for (int i = 0; i < WORDS; ++i) mine[i] = me * 1000000l + round * 10000 + i;
    const int count = round % 2 == 0 ? WORDS : 3;
    if (how == 0) {
      shmem_long_put(data, mine, (size_t)count, right);
      shmem_fence();
      shmem_long_p(flag, round, right);
    } else if (how == 1) {
      shmem_long_put_nbi(data, mine, (size_t)count, right);
      shmem_quiet();
      shmem_long_atomic_set(flag, round, right);
    } else {
      for (int i = 0; i < count; ++i) shmem_long_p(data + i, mine[i], right);
      shmem_fence();
      shmem_long_atomic_inc(flag, right);
    }
    shmem_long_wait_until(flag, SHMEM_CMP_GE, round);
    for (int i = 0; i < count; ++i) ok &= data[i] == left * 1000000l + round * 10000 + i;
    shmem_barrier_all();
  }
  return ok;
}

#define WAITS(name, T)                                                  \
  static int waits_##name(void* memory) {                               \
    T* word = memory;                                                   \
    const T first = (T)1, second = (T)-1; /* the largest if unsigned */ \
    const int right = (me + 1) % pes;                                   \
    int ok = 1;                                                         \
    *word = 0;                                                          \
    shmem_barrier_all();                                                \
    ok &= shmem_##name##_test(word, SHMEM_CMP_EQ, 0) != 0;              \
    ok &= shmem_##name##_test(word, SHMEM_CMP_NE, 0) == 0;              \
    shmem_barrier_all();                                                \
    shmem_putmem(word, &first, sizeof(T), right);                       \
    shmem_##name##_wait_until(word, SHMEM_CMP_NE, 0);                   \
    shmem_##name##_wait_until(word, SHMEM_CMP_GT, 0);                   \
    shmem_##name##_wait_until(word, SHMEM_CMP_GE, 1);                   \
    shmem_##name##_wait_until(word, SHMEM_CMP_LT, 2);                   \
    ok &= *word == first;                                               \
    shmem_barrier_all();                                                \
    shmem_putmem(word, &second, sizeof(T), right);                      \
    shmem_##name##_wait_until(word, SHMEM_CMP_EQ, second);              \
    shmem_##name##_wait_until(word, SHMEM_CMP_LE, second);              \
    ok &= *word == second;                                              \
    shmem_barrier_all();                                                \
    return ok;                                                          \
  }
#define WAIT_TYPES(X)              \
  X(short, short)                  \
  X(int, int)                      \
  X(long, long)                    \
  X(longlong, long long)           \
  X(ushort, unsigned short)        \
  X(uint, unsigned)                \
  X(ulong, unsigned long)          \
  X(ulonglong, unsigned long long) \
  X(int32, int32_t) X(int64, int64_t) X(uint32, uint32_t) X(uint64, uint64_t) X(size, size_t) X(ptrdiff, ptrdiff_t)
WAIT_TYPES(WAITS)

static int old_waits(long* words) {
  const int right = (me + 1) % pes;
  memset(words, 0, 8 * sizeof(long));
  shmem_barrier_all();
  shmem_short_p((short*)&words[0], 3, right);
  shmem_int_p((int*)&words[1], 3, right);
  shmem_long_p(&words[2], 3, right);
  shmem_longlong_p((long long*)&words[3], 3, right);
  shmem_long_p(&words[4], 3, right);
  shmemx_int32_p((int32_t*)&words[5], 3, right);
  shmemx_int64_p((int64_t*)&words[6], 3, right);
  shmem_short_wait((short*)&words[0], 0);
  shmem_int_wait((int*)&words[1], 0);
  shmem_long_wait(&words[2], 0);
  shmem_longlong_wait((long long*)&words[3], 0);
  shmem_wait(&words[4], 0);
  shmemx_int32_wait((int32_t*)&words[5], 0);
  shmemx_int64_wait((int64_t*)&words[6], 0);
  shmem_barrier_all();
  return 1;
}

int main(int argc, char** argv) {
  /* A loop of tests: natively Open MPI 4.1 does not answer in it, between nodes. */
  const int tests = argc > 1 && strcmp(argv[1], "tests") == 0;
  begin();
  const int right = (me + 1) % pes, left = (me + pes - 1) % pes;
  long* data = shmem_malloc(WORDS * sizeof(long));
  long* flag = shmem_malloc(64);
  report("fence", data_then_flag(data, flag, 0));
  report("quiet", data_then_flag(data, &static_flag, 1));
  report("single elements", data_then_flag(data, flag, 2));

  static long mine[WORDS];
  int ok = 1;
  for (int round = 0; round < ROUNDS; ++round) { /* the barriers and the heap complete what was posted */
    for (int i = 0; i < WORDS; ++i) mine[i] = me * 7 + round * 13 + i;
    shmem_long_put_nbi(data, mine, WORDS, right);
    switch (round % 4) {
      case 0:
        shmem_barrier_all();
        break;
      case 1:
        for (int i = 0; i < SHMEM_BARRIER_SYNC_SIZE; ++i) sync_words[i] = SHMEM_SYNC_VALUE;
        shmem_sync_all();
        shmem_barrier(0, 0, pes, sync_words);
        break;
      case 2:
        shmem_free(shmem_malloc(100));
        break;
      default:
        shmem_quiet();
        shmem_sync_all();
    }
    for (int i = 0; i < WORDS; ++i) ok &= data[i] == left * 7 + round * 13 + i;
    shmem_barrier_all();
  }
  report("barriers", ok);

#define RUN_WAITS(name, T) report("wait " #name, waits_##name(flag));
  WAIT_TYPES(RUN_WAITS)
  report("wait, old names", old_waits(data));

  for (int i = 0; i < 10 && pes > 1;
       ++i) { /* who waits is needed by those it waits for: some of these locks are its to give */
    *flag = flag[1] = static_flag = 0;
    shmem_barrier_all();
    const int way = tests ? i % 5 : 0; /* it waits in: a wait, tests, reads that copy, that ask the service, atomics */
    if (me == 0 && way == 0) shmem_long_wait_until(flag, SHMEM_CMP_NE, 0);
    while (me == 0 && way == 1 && !shmem_long_test(flag, SHMEM_CMP_NE, 0)) sched_yield();
    while (me == 0 && way == 2 && shmem_long_g(flag + 1, 1) == 0) sched_yield();
    while (me == 0 && way == 3 && shmem_long_g(&static_flag, 1) != -1) sched_yield();
    while (me == 0 && way == 4 && shmem_long_atomic_fetch(flag + 1, 1) == 0) sched_yield();
    if (me == 1) {
      shmem_set_lock(&locks[i]);
      static_flag = -1;
      shmem_long_p(flag, 1, 0);
      shmem_long_atomic_set(flag + 1, 1, 1);
      shmem_clear_lock(&locks[i]);
    }
    shmem_barrier_all();
  }
  report("locks of a waiting PE", 1);

  for (int i = 0; i < ROUNDS; ++i) { /* under the lock: read, add one, write back, on the last PE */
    shmem_set_lock(&lock);
    const long value = shmem_long_g(&guarded, pes - 1);
    shmem_long_p(&guarded, value + 1, pes - 1);
    shmem_clear_lock(&lock);
  }
  shmem_barrier_all();
  report("lock", shmem_long_g(&guarded, pes - 1) == (long)pes * ROUNDS);
  shmem_free(flag);
  shmem_free(data);
  return finish();
}
