/* SPDX-License-Identifier: BSD-3-Clause
 * put, get, p, g, iput, iget and the nonblocking forms: every type and size, with and without context, to the heap and
 * to static objects. Each PE writes to its right neighbour and reads from its left one. */
#include "check.h"

enum { COUNT = 600, SPREAD = 3, ROOM = COUNT * SPREAD };

static char static_from[ROOM * 16] __attribute__((aligned(64)));
static char static_to[ROOM * 16] __attribute__((aligned(64)));
static char expected[ROOM * 16] __attribute__((aligned(64)));
static char local[ROOM * 16] __attribute__((aligned(64)));

/* What PE `pe` has as byte i in round `round`. Of long double only 10 of 16 bytes are the number's. */
static unsigned char pattern(int pe, size_t i, int round) {
  return (unsigned char)((size_t)pe * 37 + i * 7 + (size_t)round * 11 + i / 256);
}
static size_t number_bytes(const char* type, size_t size) { return strstr(type, "longdouble") ? 10 : size; }

static void fill(char* memory, size_t bytes, int pe, int round) {
  for (size_t i = 0; i < bytes; ++i) memory[i] = (char)pattern(pe, i, round);
}

static int same_elements(const char* type, const char* a, const char* b, size_t count, size_t size) {
  for (size_t i = 0; i < count; ++i) {
    if (memcmp(a + i * size, b + i * size, number_bytes(type, size)) != 0) return 0;
  }
  return 1;
}

/* The moves of one type: what they are called with differs, what they must do is the same. */
typedef struct {
  const char* name;
  size_t size;
  void (*put)(void* to, const void* from, size_t count, int pe, int form);
  void (*get)(void* to, const void* from, size_t count, int pe, int form);
  void (*iput)(void* to, const void* from, ptrdiff_t to_stride, ptrdiff_t from_stride, size_t count, int pe, int form);
  void (*iget)(void* to, const void* from, ptrdiff_t to_stride, ptrdiff_t from_stride, size_t count, int pe, int form);
} moves_t;

static shmem_ctx_t context;

/* Forms: 0 plain, 1 with a context, 2 nonblocking, 3 nonblocking with a context, 4 single elements, 5 with context. */
#define MOVES(name, T, suffix, SINGLE_PUT, SINGLE_GET)                                 \
  static void put_##name(void* to, const void* from, size_t count, int pe, int form) { \
    switch (form) {                                                                    \
      case 0:                                                                          \
        shmem_##name##put##suffix(to, from, count, pe);                                \
        break;                                                                         \
      case 1:                                                                          \
        shmem_ctx_##name##put##suffix(context, to, from, count, pe);                   \
        break;                                                                         \
      case 2:                                                                          \
        shmem_##name##put##suffix##_nbi(to, from, count, pe);                          \
        shmem_quiet();                                                                 \
        break;                                                                         \
      case 3:                                                                          \
        shmem_ctx_##name##put##suffix##_nbi(context, to, from, count, pe);             \
        shmem_ctx_quiet(context);                                                      \
        break;                                                                         \
      default:                                                                         \
        SINGLE_PUT                                                                     \
    }                                                                                  \
  }                                                                                    \
  static void get_##name(void* to, const void* from, size_t count, int pe, int form) { \
    switch (form) {                                                                    \
      case 0:                                                                          \
        shmem_##name##get##suffix(to, from, count, pe);                                \
        break;                                                                         \
      case 1:                                                                          \
        shmem_ctx_##name##get##suffix(context, to, from, count, pe);                   \
        break;                                                                         \
      case 2:                                                                          \
        shmem_##name##get##suffix##_nbi(to, from, count, pe);                          \
        shmem_quiet();                                                                 \
        break;                                                                         \
      case 3:                                                                          \
        shmem_ctx_##name##get##suffix##_nbi(context, to, from, count, pe);             \
        shmem_ctx_quiet(context);                                                      \
        break;                                                                         \
      default:                                                                         \
        SINGLE_GET                                                                     \
    }                                                                                  \
  }
#define STRIDED(name, suffix)                                                                               \
  static void iput_##name##suffix(void* to, const void* from, ptrdiff_t ts, ptrdiff_t fs, size_t n, int pe, \
                                  int form) {                                                               \
    if (form == 0)                                                                                          \
      shmem_##name##iput##suffix(to, from, ts, fs, n, pe);                                                  \
    else                                                                                                    \
      shmem_ctx_##name##iput##suffix(context, to, from, ts, fs, n, pe);                                     \
  }                                                                                                         \
  static void iget_##name##suffix(void* to, const void* from, ptrdiff_t ts, ptrdiff_t fs, size_t n, int pe, \
                                  int form) {                                                               \
    if (form == 0)                                                                                          \
      shmem_##name##iget##suffix(to, from, ts, fs, n, pe);                                                  \
    else                                                                                                    \
      shmem_ctx_##name##iget##suffix(context, to, from, ts, fs, n, pe);                                     \
  }

#define TYPED(name, T)                                                                                              \
  MOVES(                                                                                                            \
      name##_, T, ,                                                                                                 \
      for (size_t i = 0; i < count; ++i) {                                                                          \
        if (form == 4)                                                                                              \
          shmem_##name##_p((T*)to + i, ((const T*)from)[i], pe);                                                    \
        else                                                                                                        \
          shmem_ctx_##name##_p(context, (T*)to + i, ((const T*)from)[i], pe);                                       \
      },                                                                                                            \
      for (size_t i = 0; i < count; ++i)((T*)to)[i] = form == 4                                                     \
                                                          ? shmem_##name##_g((const T*)from + i, pe)                \
                                                          : shmem_ctx_##name##_g(context, (const T*)from + i, pe);) \
  STRIDED(name##_, )
#define SIZED(bits, bytes)                                                                  \
  static void put_sized##bits(void* to, const void* from, size_t count, int pe, int form) { \
    switch (form) {                                                                         \
      case 1:                                                                               \
        shmem_ctx_put##bits(context, to, from, count, pe);                                  \
        break;                                                                              \
      case 2:                                                                               \
        shmem_put##bits##_nbi(to, from, count, pe);                                         \
        shmem_quiet();                                                                      \
        break;                                                                              \
      case 3:                                                                               \
        shmem_ctx_put##bits##_nbi(context, to, from, count, pe);                            \
        shmem_ctx_quiet(context);                                                           \
        break;                                                                              \
      default:                                                                              \
        shmem_put##bits(to, from, count, pe);                                               \
    }                                                                                       \
  }                                                                                         \
  static void get_sized##bits(void* to, const void* from, size_t count, int pe, int form) { \
    switch (form) {                                                                         \
      case 1:                                                                               \
        shmem_ctx_get##bits(context, to, from, count, pe);                                  \
        break;                                                                              \
      case 2:                                                                               \
        shmem_get##bits##_nbi(to, from, count, pe);                                         \
        shmem_quiet();                                                                      \
        break;                                                                              \
      case 3:                                                                               \
        shmem_ctx_get##bits##_nbi(context, to, from, count, pe);                            \
        shmem_ctx_quiet(context);                                                           \
        break;                                                                              \
      default:                                                                              \
        shmem_get##bits(to, from, count, pe);                                               \
    }                                                                                       \
  }
#define TYPES(X)                   \
  X(char, char)                    \
  X(short, short)                  \
  X(int, int)                      \
  X(long, long)                    \
  X(longlong, long long)           \
  X(schar, signed char)            \
  X(uchar, unsigned char)          \
  X(ushort, unsigned short)        \
  X(uint, unsigned)                \
  X(ulong, unsigned long)          \
  X(ulonglong, unsigned long long) \
  X(float, float)                  \
  X(double, double)                \
  X(longdouble, long double)       \
  X(int8, int8_t)                  \
  X(int16, int16_t)                \
  X(int32, int32_t)                \
  X(int64, int64_t)                \
  X(uint8, uint8_t) X(uint16, uint16_t) X(uint32, uint32_t) X(uint64, uint64_t) X(size, size_t) X(ptrdiff, ptrdiff_t)

TYPES(TYPED)
SIZED(8, 1)
SIZED(16, 2)
SIZED(32, 4)
SIZED(64, 8)
SIZED(128, 16)
SIZED(mem, 1)
STRIDED(, 8)
STRIDED(, 16)
STRIDED(, 32)
STRIDED(, 64)
STRIDED(, 128)

#define TYPED_ROW(name, T) {#name, sizeof(T), put_##name##_, get_##name##_, iput_##name##_, iget_##name##_},
#define SIZED_ROW(bits, bytes) {"size " #bits, bytes, put_sized##bits, get_sized##bits, iput_##bits, iget_##bits},
static const moves_t all_moves[] = {TYPES(TYPED_ROW) SIZED_ROW(8, 1) SIZED_ROW(16, 2) SIZED_ROW(32, 4) SIZED_ROW(64, 8)
                                        SIZED_ROW(128, 16){"mem", 1, put_sizedmem, get_sizedmem, NULL, NULL}};

static int check_contiguous(const moves_t* moves, char* from, char* to, int round) {
  const int left = (me + pes - 1) % pes, right = (me + 1) % pes;
  int ok = 1;
  for (int form = 0; form < 6; ++form) {
    const size_t count = form < 4 ? (form % 2 == 0 ? COUNT : 5) : 4, bytes = count * moves->size;
    fill(local, bytes, me, round + form);
    memset(to, 0, bytes);
    shmem_barrier_all();
    moves->put(to, local, count, right, form);
    shmem_ctx_quiet(context); /* barriers complete the default context only */
    shmem_barrier_all();
    fill(expected, bytes, left, round + form);
    ok &= same_elements(moves->name, to, expected, count, moves->size);
    fill(from, bytes, me, round + form + 100);
    memset(local, 0, bytes);
    shmem_barrier_all();
    moves->get(local, from, count, left, form);
    fill(expected, bytes, left, round + form + 100);
    ok &= same_elements(moves->name, local, expected, count, moves->size);
    shmem_barrier_all();
  }
  return ok;
}

static int check_strided(const moves_t* moves, char* from, char* to, int round) {
  static const ptrdiff_t strides[][2] = {{1, 1}, {2, 1}, {1, 3}, {3, 2}};
  const int left = (me + pes - 1) % pes, right = (me + 1) % pes;
  const size_t size = moves->size, room = ROOM * size;
  int ok = 1;
  for (int i = 0; i < 8; ++i) {
    const ptrdiff_t there = strides[i / 2][0], here = strides[i / 2][1];
    const size_t count = i % 2 == 0 ? COUNT : 4;
    fill(local, room, me, round);
    memset(to, 0, room);
    memset(expected, 0, room);
    shmem_barrier_all();
    moves->iput(to, local, there, here, count, right, i % 2);
    shmem_ctx_quiet(context);
    shmem_barrier_all();
    fill(local, room, left, round);
    for (size_t e = 0; e < count; ++e)
      memcpy(expected + e * (size_t)there * size, local + e * (size_t)here * size, size);
    ok &= memcmp(to, expected, room) == 0;
    fill(from, room, me, round);
    memset(local, 0, room);
    memset(expected, 0, room);
    shmem_barrier_all();
    moves->iget(local, from, here, there, count, left, i % 2);
    fill(to, room, left, round);
    for (size_t e = 0; e < count; ++e) memcpy(expected + e * (size_t)here * size, to + e * (size_t)there * size, size);
    ok &= memcmp(local, expected, room) == 0;
    shmem_barrier_all();
  }
  return ok;
}

int main(void) {
  begin();
  char* heap = shmem_malloc(2 * ROOM * 16);
  if (shmem_ctx_create(0, &context) != 0) context = SHMEM_CTX_DEFAULT;
  int round = 0;
  for (size_t i = 0; i < sizeof(all_moves) / sizeof(*all_moves); ++i) {
    const moves_t* moves = &all_moves[i];
    int ok = 1;
    for (int place = 0; place < 2; ++place) {
      char *from = place ? static_from : heap, *to = place ? static_to : heap + ROOM * 16;
      ok &= check_contiguous(moves, from, to, round += 7);
      if (moves->iput != NULL) ok &= check_strided(moves, from, to, round += 7);
    }
    report(moves->name, ok);
  }
  /* Long transfers, at odd addresses, to every PE and to itself. */
  enum { LONG = 1500001 };
  char *big = shmem_malloc((size_t)LONG * (size_t)pes + 64), *mine = malloc(LONG);
  fill(mine, LONG, me, 3);
  shmem_barrier_all();
  for (int pe = 0; pe < pes; ++pe) shmem_putmem_nbi(big + 3 + (size_t)me * LONG, mine, LONG, pe);
  shmem_barrier_all();
  int ok = 1;
  for (int pe = 0; pe < pes; ++pe) {
    fill(mine, LONG, pe, 3);
    ok &= memcmp(big + 3 + (size_t)pe * LONG, mine, LONG) == 0;
    memset(mine, 0, LONG);
    shmem_getmem(mine, big + 3 + (size_t)me * LONG, LONG, pe);
    for (size_t i = 0; i < LONG; ++i) ok &= (unsigned char)mine[i] == pattern(me, i, 3);
  }
  report("long", ok);
  shmem_putmem(big, mine, 0, (me + 1) % pes);
  shmem_getmem(mine, big, 0, (me + 1) % pes);
  report("nothing", 1);
  free(mine);
  shmem_free(big);
  if (context != SHMEM_CTX_DEFAULT) shmem_ctx_destroy(context);
  shmem_free(heap);
  return finish();
}
