/* SPDX-License-Identifier: BSD-3-Clause
 * Atomic operations: every type, with and without context, old and new names; alone and by all PEs at once. */
#include "check.h"

#include <shmemx.h>

static shmem_ctx_t context;

/* On the word of the right neighbour, which nobody else touches. */
#define ADD_FAMILY(name, T, FORM, ctx)                                                \
  static int add_##FORM##name(T* word, int pe) {                                      \
    int ok = 1;                                                                       \
    shmem_##FORM##name##_atomic_set(ctx word, (T)40, pe);                             \
    shmem_##FORM##name##_atomic_add(ctx word, (T)2, pe);                              \
    ok &= shmem_##FORM##name##_atomic_fetch(ctx word, pe) == (T)42;                   \
    ok &= shmem_##FORM##name##_atomic_fetch_add(ctx word, (T)-43, pe) == (T)42;       \
    ok &= shmem_##FORM##name##_atomic_fetch_inc(ctx word, pe) == (T)-1;               \
    shmem_##FORM##name##_atomic_inc(ctx word, pe);                                    \
    ok &= shmem_##FORM##name##_atomic_compare_swap(ctx word, (T)2, (T)9, pe) == (T)1; \
    ok &= shmem_##FORM##name##_atomic_compare_swap(ctx word, (T)1, (T)9, pe) == (T)1; \
    ok &= shmem_##FORM##name##_atomic_swap(ctx word, (T)11, pe) == (T)9;              \
    return ok && shmem_##FORM##name##_atomic_fetch(ctx word, pe) == (T)11;            \
  }
#define BIT_FAMILY(name, T, FORM, ctx)                                                 \
  static int bit_##FORM##name(T* word, int pe) {                                       \
    int ok = 1;                                                                        \
    const T zero = 0;                                                                  \
    shmem_put##FORM##_word(word, &zero, sizeof(T), pe);                                \
    shmem_##FORM##name##_atomic_or(ctx word, (T)0x55, pe);                             \
    ok &= shmem_##FORM##name##_atomic_fetch_or(ctx word, (T)0xa0, pe) == (T)0x55;      \
    shmem_##FORM##name##_atomic_and(ctx word, (T)0xfe, pe);                            \
    ok &= shmem_##FORM##name##_atomic_fetch_and(ctx word, (T)0x7f, pe) == (T)0xf4;     \
    shmem_##FORM##name##_atomic_xor(ctx word, (T)0x0f, pe);                            \
    return ok && shmem_##FORM##name##_atomic_fetch_xor(ctx word, (T)1, pe) == (T)0x7b; \
  }
static void shmem_put_word(void* word, const void* value, size_t bytes, int pe) {
  shmem_putmem(word, value, bytes, pe);
  shmem_quiet();
}
#define shmem_putctx__word shmem_put_word

#define ADD_TYPES(X) \
  X(int, int)        \
  X(long, long) X(longlong, long long) X(uint, unsigned) X(ulong, unsigned long) X(ulonglong, unsigned long long)
#define BIT_TYPES(X) ADD_TYPES(X) X(int32, int32_t) X(int64, int64_t) X(uint32, uint32_t) X(uint64, uint64_t)
#define CONTEXT context,
#define ADD_BOTH(name, T) ADD_FAMILY(name, T, , ) ADD_FAMILY(name, T, ctx_, CONTEXT)
#define BIT_BOTH(name, T) BIT_FAMILY(name, T, , ) BIT_FAMILY(name, T, ctx_, CONTEXT)
ADD_TYPES(ADD_BOTH)
BIT_TYPES(BIT_BOTH)

#define FLOATING(name, T)                                                      \
  static int floating_##name(T* word, int pe) {                                \
    int ok = 1;                                                                \
    shmem_##name##_atomic_set(word, (T)1.5, pe);                               \
    ok &= shmem_##name##_atomic_fetch(word, pe) == (T)1.5;                     \
    ok &= shmem_##name##_atomic_swap(word, (T)-0.25, pe) == (T)1.5;            \
    ok &= shmem_ctx_##name##_atomic_swap(context, word, (T)8, pe) == (T)-0.25; \
    shmem_ctx_##name##_atomic_set(context, word, (T)3, pe);                    \
    ok &= shmem_ctx_##name##_atomic_fetch(context, word, pe) == (T)3;          \
    shmem_##name##_set(word, (T)4, pe);                                        \
    ok &= shmem_##name##_swap(word, (T)5, pe) == (T)4;                         \
    return ok && shmem_##name##_fetch(word, pe) == (T)5;                       \
  }
FLOATING(float, float)
FLOATING(double, double)

#define OLD(prefix, T, name)                     \
  static int old_##name(T* word, int pe) {       \
    int ok = 1;                                  \
    prefix##_set(word, 40, pe);                  \
    prefix##_add(word, 2, pe);                   \
    ok &= prefix##_fadd(word, 1, pe) == 42;      \
    prefix##_inc(word, pe);                      \
    ok &= prefix##_finc(word, pe) == 44;         \
    ok &= prefix##_cswap(word, 45, 7, pe) == 45; \
    ok &= prefix##_swap(word, 8, pe) == 7;       \
    return ok && prefix##_fetch(word, pe) == 8;  \
  }
OLD(shmem_int, int, int)
OLD(shmem_long, long, long)
OLD(shmem_longlong, long long, longlong)
OLD(shmemx_int32, int32_t, x32)
OLD(shmemx_int64, int64_t, x64)

static long static_words[16];
enum { ROUNDS = 200 };

static int all_at_once(long* words, unsigned char* seen) {
  /* words[0]: tickets, words[1]: sum by compare and swap, words[2]: sum of additions, words[3]: bits */
  int ok = 1;
  memset(words, 0, 4 * sizeof(long));
  memset(seen, 0, (size_t)(pes * ROUNDS));
  shmem_barrier_all();
  for (int i = 0; i < ROUNDS; ++i) {
    const long ticket = shmem_long_atomic_fetch_inc(&words[0], 0);
    ok &= ticket >= 0 && ticket < (long)pes * ROUNDS;
    if (ok) shmem_uchar_p(&seen[ticket], 1, 0);
    shmem_long_atomic_add(&words[2], me + 1, 0);
    long old = shmem_long_atomic_fetch(&words[1], 0), found;
    while ((found = shmem_long_atomic_compare_swap(&words[1], old, old + 3, 0)) != old) old = found;
  }
  shmem_ulong_atomic_or((unsigned long*)&words[3], 1ul << me, 0);
  shmem_barrier_all();
  if (me == 0) {
    ok &= words[0] == (long)pes * ROUNDS && words[1] == 3l * pes * ROUNDS;
    ok &= words[2] == (long)ROUNDS * pes * (pes + 1) / 2 && words[3] == (1l << pes) - 1;
    for (int i = 0; i < pes * ROUNDS; ++i) ok &= seen[i] == 1;
  }
  shmem_barrier_all();
  return ok;
}

int main(void) {
  begin();
  const int right = (me + 1) % pes;
  if (shmem_ctx_create(0, &context) != 0) context = SHMEM_CTX_DEFAULT;
  long* heap = shmem_calloc(16, sizeof(long));
  unsigned char* seen = shmem_malloc((size_t)(pes * ROUNDS));
  for (int place = 0; place < 2; ++place) {
    void* word = place == 0 ? heap : static_words;
#define RUN_ADD(name, T) report("add " #name, add_##name(word, right) & add_ctx_##name(word, right));
#define RUN_BIT(name, T) report("bits " #name, bit_##name(word, right) & bit_ctx_##name(word, right));
    ADD_TYPES(RUN_ADD)
    BIT_TYPES(RUN_BIT)
    report("float", floating_float(word, right));
    report("double", floating_double(word, right));
    report("old int", old_int(word, right));
    report("old long", old_long(word, right));
    report("old longlong", old_longlong(word, right));
    report("old int32", old_x32(word, right));
    report("old int64", old_x64(word, right));
    report("all at once", all_at_once(place == 0 ? heap : static_words, seen));
  }
  report("own", add_int((int*)heap, me) & bit_long(heap, me));
  if (context != SHMEM_CTX_DEFAULT) shmem_ctx_destroy(context);
  shmem_free(seen);
  shmem_free(heap);
  return finish();
}
