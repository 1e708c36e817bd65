/* SPDX-License-Identifier: BSD-3-Clause
 * Random collectives on random active sets against what each member can compute by itself. All PEs draw the same numbers;
 * what a PE sends follows from the number of the round. Some are begun, and completed in another order.
 * Usage: collectives [seed [rounds]] */
#include "check.h"

#include <complex.h>
#include <offpath/shmem.h>

enum { SLOTS = 4, ELEMENTS = 6000, MEMBERS = 8, GUARD = 64, STRIDES = 3 };
enum { BYTES = ELEMENTS * 16 * MEMBERS + 2 * GUARD };
enum kind { BROADCAST, COLLECT, FCOLLECT, ALLTOALL, ALLTOALLS, REDUCE, KINDS };
static const char* const kind_names[KINDS] = {"broadcast", "collect", "fcollect", "alltoall", "alltoalls", "reduce"};

/* One collective under way or done. */
struct call {
  enum kind kind;
  int first, log_stride, size, root, wide, begun, in_place;
  size_t count;
  ptrdiff_t to, from;
  int type;
  uint64_t round;
  shmemx_req_t request;
};

static long barrier_sync[SHMEM_BARRIER_SYNC_SIZE], syncs[SLOTS][SHMEM_SYNC_SIZE];
static unsigned char* heap[SLOTS][2];         /* dest, source */
static char work[SLOTS][(ELEMENTS + 2) * 16]; /* as long as any reduction wants it */
static unsigned char expected[BYTES];

static int member_of(const struct call* c, int pe) {
  const int stride = 1 << c->log_stride;
  if (pe < c->first || (pe - c->first) % stride != 0) return -1;
  return (pe - c->first) / stride < c->size ? (pe - c->first) / stride : -1;
}

static uint64_t mixed(uint64_t round, uint64_t member, uint64_t index) {
  uint64_t state = round * 1000003 + member * 7919 + index;
  return next_random(&state);
}

/* What a member gives to a collect. */
static size_t own_count(const struct call* c, int member) {
  return (size_t)(mixed(c->round, (uint64_t)member, 99) % (c->count + 1));
}

/* Types of reductions, and numbers whose sums and products are exact in any order. */
#define TYPES(X)                                    \
  X(0, int, int, sum, a + b)                        \
  X(1, int, int, xor, a ^ b)                        \
  X(2, long, long, min, a < b ? a : b)              \
  X(3, short, short, or, a | b)                     \
  X(4, longlong, long long, and, a& b)              \
  X(5, double, double, sum, a + b)                  \
  X(6, float, float, max, a > b ? a : b)            \
  X(7, longdouble, long double, min, a < b ? a : b) \
  X(8, complexd, double complex, prod, a* b)        \
  X(9, complexf, float complex, sum, a + b)         \
  X(10, longlong, long long, prod, a* b)            \
  X(11, long, long, max, a > b ? a : b)
enum { TYPE_COUNT = 12, LONG_DOUBLE = 7 };

static void fill_numbers(const struct call* c, int member, unsigned char* to) {
  for (size_t i = 0; i < c->count; ++i) {
    const long value = 1 + (long)(mixed(c->round, (uint64_t)member, i) % 3);
    switch (c->type) {
#define X(number, name, T, op, formula) \
  case number:                          \
    ((T*)to)[i] = (T)value;             \
    break;
      TYPES(X)
#undef X
    }
  }
}

static void combine(const struct call* c, unsigned char* into, const unsigned char* with) {
  for (size_t i = 0; i < c->count; ++i) {
    switch (c->type) {
#define X(number, name, T, op, formula)                       \
  case number: {                                              \
    const T a = ((const T*)into)[i], b = ((const T*)with)[i]; \
    ((T*)into)[i] = (T)(formula);                             \
    break;                                                    \
  }
      TYPES(X)
#undef X
    }
  }
}

static size_t element_bytes(const struct call* c) {
  switch (c->type) {
#define X(number, name, T, op, formula) \
  case number:                          \
    return sizeof(T);
    TYPES(X)
#undef X
  }
  return 0;
}

static void draw(struct call* c, uint64_t* seed) {
  c->round = next_random(seed);
  c->kind = (enum kind)(next_random(seed) % KINDS);
  c->log_stride = (int)(next_random(seed) % 3);
  c->first = (int)(next_random(seed) % (uint64_t)pes);
  const int most = (pes - 1 - c->first) / (1 << c->log_stride) + 1;
  c->size = 1 + (int)(next_random(seed) % (uint64_t)most);
  if (next_random(seed) % 3 == 0) c->first = c->log_stride = 0, c->size = pes;
  c->root = (int)(next_random(seed) % (uint64_t)c->size);
  c->wide = (int)(next_random(seed) % 2);
  c->begun = (int)(next_random(seed) % 2);
  c->in_place = next_random(seed) % 4 == 0;
  c->to = 1 + (ptrdiff_t)(next_random(seed) % STRIDES);
  c->from = 1 + (ptrdiff_t)(next_random(seed) % STRIDES);
  c->type = (int)(next_random(seed) % TYPE_COUNT);
  const uint64_t most_elements = next_random(seed) % 3 == 0 ? ELEMENTS / STRIDES : 20;
  c->count = (size_t)(next_random(seed) % (most_elements + 1));
  c->request = NULL;
  if (c->kind == COLLECT || c->kind == ALLTOALLS) c->begun = 0; /* there is no such form */
}

static unsigned char value_at(const struct call* c, int member, size_t byte) {
  return (unsigned char)mixed(c->round, (uint64_t)member, byte / 8) + (unsigned char)byte;
}

static void fill(const struct call* c, int member, unsigned char* dest, unsigned char* source) {
  memset(dest, 0xee, BYTES);
  if (c->kind == REDUCE) {
    fill_numbers(c, member, source + GUARD);
    if (c->in_place) memcpy(dest + GUARD, source + GUARD, c->count * element_bytes(c));
  } else {
    for (size_t i = 0; i < BYTES - 2 * GUARD; ++i) source[GUARD + i] = value_at(c, member, i);
  }
}

static void start(struct call* c, unsigned char* dest, unsigned char* source, int slot) {
  long* const sync = syncs[slot];
  const int member = member_of(c, me);
  void* const to = dest + GUARD;
  const void* const from = c->kind == REDUCE && c->in_place ? to : source + GUARD;
#define SET c->first, c->log_stride, c->size
#define BOTH(name, ...)                                                     \
  if (c->begun && c->wide) shmemx_##name##64_nb(__VA_ARGS__, &c->request);  \
  if (c->begun && !c->wide) shmemx_##name##32_nb(__VA_ARGS__, &c->request); \
  if (!c->begun && c->wide) shmem_##name##64(__VA_ARGS__);                  \
  if (!c->begun && !c->wide) shmem_##name##32(__VA_ARGS__)
  switch (c->kind) {
    case BROADCAST:
      BOTH(broadcast, to, from, c->count, c->root, SET, sync);
      break;
    case COLLECT:
      if (c->wide) shmem_collect64(to, from, own_count(c, member), SET, sync);
      if (!c->wide) shmem_collect32(to, from, own_count(c, member), SET, sync);
      break;
    case FCOLLECT:
      BOTH(fcollect, to, from, c->count, SET, sync);
      break;
    case ALLTOALL:
      BOTH(alltoall, to, from, c->count, SET, sync);
      break;
    case ALLTOALLS:
      if (c->wide) shmem_alltoalls64(to, from, c->to, c->from, c->count, SET, sync);
      if (!c->wide) shmem_alltoalls32(to, from, c->to, c->from, c->count, SET, sync);
      break;
    default:
      switch (c->type) {
#define X(number, name, T, op, formula)                                                                  \
  case number:                                                                                           \
    if (c->begun) {                                                                                      \
      shmemx_##name##_##op##_to_all_nb(to, from, (int)c->count, SET, (T*)work[slot], sync, &c->request); \
    } else {                                                                                             \
      shmem_##name##_##op##_to_all(to, from, (int)c->count, SET, (T*)work[slot], sync);                  \
    }                                                                                                    \
    break;
        TYPES(X)
#undef X
      }
  }
}

/* What dest must be at this member. */
static void expect(const struct call* c) {
  const int member = member_of(c, me);
  const size_t width = c->wide ? 8 : 4, bytes = c->count * width;
  static unsigned char theirs[ELEMENTS * 16];
  memset(expected, 0xee, BYTES);
  unsigned char* const to = expected + GUARD;
  size_t place = 0;
  switch (c->kind) {
    case BROADCAST:
      for (size_t i = 0; i < bytes && member != c->root; ++i) to[i] = value_at(c, c->root, i);
      break;
    case COLLECT:
    case FCOLLECT:
      for (int from = 0; from < c->size; ++from) {
        const size_t theirs_bytes = c->kind == COLLECT ? own_count(c, from) * width : bytes;
        for (size_t i = 0; i < theirs_bytes; ++i) to[place++] = value_at(c, from, i);
      }
      break;
    case ALLTOALL:
      for (int from = 0; from < c->size; ++from)
        for (size_t i = 0; i < bytes; ++i) to[place++] = value_at(c, from, (size_t)member * bytes + i);
      break;
    case ALLTOALLS:
      for (int from = 0; from < c->size; ++from) {
        for (size_t i = 0; i < c->count; ++i) {
          const size_t there = ((size_t)member * c->count + i) * (size_t)c->from * width;
          const size_t here = ((size_t)from * c->count + i) * (size_t)c->to * width;
          for (size_t byte = 0; byte < width; ++byte) to[here + byte] = value_at(c, from, there + byte);
        }
      }
      break;
    default:
      fill_numbers(c, 0, to);
      for (int from = 1; from < c->size; ++from) {
        fill_numbers(c, from, theirs);
        combine(c, to, theirs);
      }
  }
}

int main(int argc, char** argv) {
  begin();
  uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20260801;
  const int rounds = argc > 2 ? atoi(argv[2]) : 60;
  if (me == 0) printf("seed %llu\n", (unsigned long long)seed);
  int ok[KINDS] = {1, 1, 1, 1, 1, 1}, sync_ok = 1;
  for (int slot = 0; slot < SLOTS; ++slot) {
    for (int side = 0; side < 2; ++side) heap[slot][side] = shmem_malloc(BYTES);
    for (int i = 0; i < SHMEM_SYNC_SIZE; ++i) syncs[slot][i] = SHMEM_SYNC_VALUE;
  }
  for (int i = 0; i < SHMEM_BARRIER_SYNC_SIZE; ++i) barrier_sync[i] = SHMEM_SYNC_VALUE;
  for (int round = 0; round < rounds; ++round) {
    struct call calls[SLOTS];
    for (int slot = 0; slot < SLOTS; ++slot) {
      draw(&calls[slot], &seed);
      if (member_of(&calls[slot], me) >= 0)
        fill(&calls[slot], member_of(&calls[slot], me), heap[slot][0], heap[slot][1]);
    }
    shmem_barrier_all();
    for (int slot = 0; slot < SLOTS; ++slot) {
      if (member_of(&calls[slot], me) >= 0) start(&calls[slot], heap[slot][0], heap[slot][1], slot);
    }
    for (int slot = SLOTS - 1; slot >= 0; --slot) {
      if (calls[slot].round % 2 == 0) shmemx_req_wait(&calls[slot].request);
      while (!shmemx_req_test(&calls[slot].request)) continue;
    }
    for (int slot = 0; slot < SLOTS; ++slot) {
      const struct call* c = &calls[slot];
      if (member_of(c, me) < 0) continue;
      expect(c);
      if (c->kind == REDUCE && c->type == LONG_DOUBLE) { /* the bytes behind each number are nobody's */
        for (size_t i = 0; i < c->count; ++i) memset(heap[slot][0] + GUARD + i * 16 + 10, 0xee, 6);
        for (size_t i = 0; i < c->count; ++i) memset(expected + GUARD + i * 16 + 10, 0xee, 6);
      }
      if (memcmp(heap[slot][0], expected, BYTES) != 0) {
        ok[c->kind] = 0;
        fprintf(stderr, "PE %d: round %d, slot %d: %s (%d, %d, %d) of %zu, begun %d\n", me, round, slot,
                kind_names[c->kind], c->first, c->log_stride, c->size, c->count, c->begun);
      }
      /* The others of a set are in step by its barrier, which completes what was put. */
      if (c->size == pes && slot == 0) {
        shmem_barrier(0, 0, pes, barrier_sync);
        shmem_sync_all();
      }
    }
    shmem_barrier_all();
    for (int slot = 0; slot < SLOTS; ++slot)
      for (int i = 0; i < SHMEM_SYNC_SIZE; ++i) sync_ok &= syncs[slot][i] == SHMEM_SYNC_VALUE;
  }
  for (int kind = 0; kind < KINDS; ++kind) report(kind_names[kind], ok[kind]);
  report("sync arrays", sync_ok);
  return finish();
}
