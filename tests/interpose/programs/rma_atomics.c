/* SPDX-License-Identifier: BSD-3-Clause
 * Everything atomic, by all ranks on the same cells, on a window that may change its way at barriers and fences: tickets
 * are given once, sums are right, replacements stay in order, whoever swapped has swapped. OFFPATH_MPI_WINDOWS says the
 * way; alternate changes it wherever that is legal. Operations may be under way in a barrier: it must not change then.
 * Argument "unlike": ranks 1 and 2 were told other ways than rank 0. */
#include "world.h"

enum { CELLS = 64, LONG_CELLS = 4096, PHASES = 60, MOST = 12 };
/* The window of each rank: tickets, swapped numbers, sums, replaced cells (one for each origin), long sums, blocks
 * that are put and got, and long ones that are replaced (one of each for each origin). */
enum { TICKETS = 0, SWAPS = 8, SUMS = 16, ORDERED = SUMS + CELLS, LONG = ORDERED + 64, BLOCKS = LONG + LONG_CELLS };

static int wrong;
static MPI_Win win;
static MPI_Comm twin, turned; /* the same ranks in the same order, and in another */
static long *memory, *added, *many, long_block[LONG_CELLS], last_long;
static long swapped, last, tickets_count, *tickets;
static unsigned own_state, common_state = 12345;

static int draw_of(unsigned* state, int below) {
  *state = *state * 1664525u + 1013904223u;
  return (int)((*state >> 8) % (unsigned)below);
}
static int draw(int below) { return draw_of(&own_state, below); }

/* One operation, perhaps not complete afterwards. */
static void operate(void) {
  const int target = draw(size), cell = draw(CELLS), count = 1 + draw(CELLS - cell);
  const long one = 1;
  static long sent[CELLS], got[CELLS], replaced;
  MPI_Request request;
  switch (draw(9)) {
    case 0:
      MPI_Fetch_and_op(&one, &tickets[tickets_count++], MPI_LONG, 0, TICKETS, MPI_SUM, win);
      MPI_Win_flush(0, win);
      break;
    case 1: {
      long old = 0, seen = -1;
      for (int tries = 0; tries < 10000 && seen != old; ++tries) {
        const long next = (tries == 0 ? 0 : seen) + 1;
        old = next - 1;
        MPI_Compare_and_swap(&next, &old, &seen, MPI_LONG, target, SWAPS, win);
        MPI_Win_flush(target, win);
      }
      if (seen == old) ++swapped;
      break;
    }
    case 2:
      MPI_Rget_accumulate(&one, 1, MPI_LONG, &tickets[tickets_count++], 1, MPI_LONG, 0, TICKETS, 1, MPI_LONG, MPI_SUM,
                          win, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      break;
    case 3: /* not complete: the order counts */
      for (int i = 0; i < 3; ++i) {
        replaced = ++last;
        MPI_Accumulate(&replaced, 1, MPI_LONG, target, ORDERED + rank, 1, MPI_LONG, MPI_REPLACE, win);
        MPI_Win_flush_local(target, win);
      }
      for (int other = 0; other < size; ++other) {
        if (other != target) MPI_Accumulate(&last, 1, MPI_LONG, other, ORDERED + rank, 1, MPI_LONG, MPI_REPLACE, win);
      }
      MPI_Win_flush_local_all(win);
      break;
    case 4:
      for (int i = 0; i < LONG_CELLS; ++i) many[i] = i;
      ++added[(long)target * (CELLS + 1) + CELLS];
      MPI_Accumulate(many, LONG_CELLS, MPI_LONG, target, LONG, LONG_CELLS, MPI_LONG, MPI_SUM, win);
      MPI_Win_flush_local(target, win);
      break;
    case 5: { /* in the same batch as what is atomic */
      long put[16], back[16];
      for (int i = 0; i < 16; ++i) put[i] = draw(1000);
      MPI_Accumulate(&one, 1, MPI_LONG, target, SUMS + cell, 1, MPI_LONG, MPI_SUM, win);
      ++added[(long)target * (CELLS + 1) + cell];
      if (draw(2)) {
        MPI_Put(put, 16, MPI_LONG, target, BLOCKS + 16 * rank, 16, MPI_LONG, win);
      } else { /* always the service's */
        MPI_Rput(put, 16, MPI_LONG, target, BLOCKS + 16 * rank, 16, MPI_LONG, win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      }
      MPI_Win_flush(target, win);
      MPI_Get(back, 16, MPI_LONG, target, BLOCKS + 16 * rank, 16, MPI_LONG, win);
      MPI_Win_flush(target, win);
      wrong += memcmp(put, back, sizeof(put)) != 0;
      break;
    }
    case 6:
      MPI_Raccumulate(&one, 1, MPI_LONG, target, SUMS + cell, 1, MPI_LONG, MPI_SUM, win, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      ++added[(long)target * (CELLS + 1) + cell];
      break;
    default:
      for (int i = 0; i < count; ++i) {
        sent[i] = draw(100);
        added[(long)target * (CELLS + 1) + cell + i] += sent[i];
      }
      if (draw(2)) {
        MPI_Accumulate(sent, count, MPI_LONG, target, SUMS + cell, count, MPI_LONG, MPI_SUM, win);
      } else {
        MPI_Get_accumulate(sent, count, MPI_LONG, got, count, MPI_LONG, target, SUMS + cell, count, MPI_LONG, MPI_SUM,
                           win);
      }
      MPI_Win_flush_local(target, win);
  }
}

static MPI_Aint block_of(int origin) { return BLOCKS + 16 * size + (MPI_Aint)origin * LONG_CELLS; }

/* The same on all ranks, but for who has something under way meanwhile. What that asks for afterwards comes later, too. */
static void meet(int kind) {
  const int busy = draw(3) == 0, target = draw(size);
  const long behind = ++last_long + 1;
  MPI_Win_flush_all(win);
  if (busy) {
    for (int i = 0; i < LONG_CELLS; ++i) long_block[i] = last_long;
    for (int i = 0; i < 8; ++i) {
      MPI_Accumulate(long_block, LONG_CELLS, MPI_LONG, target, block_of(rank), LONG_CELLS, MPI_LONG, MPI_REPLACE, win);
    }
  }
  if (kind == 0) MPI_Barrier(twin);
  if (kind == 1) MPI_Barrier(turned);
  if (kind >= 2) MPI_Barrier(MPI_COMM_WORLD);
  if (!busy) return;
  MPI_Accumulate(&behind, 1, MPI_LONG, target, block_of(rank) + LONG_CELLS - 1, 1, MPI_LONG, MPI_REPLACE, win);
  MPI_Win_flush(target, win);
  long found = -1;
  MPI_Get(&found, 1, MPI_LONG, target, block_of(rank) + LONG_CELLS - 1, 1, MPI_LONG, win);
  MPI_Win_flush(target, win);
  wrong += found != behind;
}

static int by_value(const void* one, const void* other) {
  const long a = *(const long*)one, b = *(const long*)other;
  return (a > b) - (a < b);
}

static void check_all(void) {
  MPI_Win_lock_all(0, win);
  MPI_Barrier(MPI_COMM_WORLD);
  long* const sums = malloc(sizeof(long) * (size_t)size * (CELLS + 1));
  MPI_Allreduce(added, sums, size * (CELLS + 1), MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  const long* const mine = sums + (long)rank * (CELLS + 1);
  MPI_Win_sync(win);
  int ok = wrong == 0;
  for (int i = 0; i < CELLS; ++i) ok &= memory[SUMS + i] == mine[i];
  for (int i = 0; i < LONG_CELLS; ++i) ok &= memory[LONG + i] == mine[CELLS] * i;
  report("sums", ok);
  long swaps = 0;
  MPI_Allreduce(&memory[SWAPS], &swaps, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &swapped, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  report("swaps", swaps == swapped);
  long* const lasts = malloc(sizeof(long) * (size_t)size);
  MPI_Allgather(&last, 1, MPI_LONG, lasts, 1, MPI_LONG, MPI_COMM_WORLD);
  ok = 1;
  for (int i = 0; i < size; ++i) ok &= memory[ORDERED + i] == lasts[i];
  report("order", ok);
  int count = (int)tickets_count;
  int* const counts = malloc(sizeof(int) * 2 * (size_t)size);
  MPI_Allgather(&count, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD);
  int* const places = counts + size;
  int all = 0;
  for (int i = 0; i < size; ++i) places[i] = all, all += counts[i];
  long* const every = malloc(sizeof(long) * (size_t)(all + 1));
  MPI_Allgatherv(tickets, count, MPI_LONG, every, counts, places, MPI_LONG, MPI_COMM_WORLD);
  qsort(every, (size_t)all, sizeof(long), by_value);
  ok = 1;
  for (int i = 0; i < all; ++i) ok &= every[i] == i;
  report("tickets", ok);
  MPI_Win_unlock_all(win);
  free(sums), free(lasts), free(counts), free(every);
}

/* Begins anew, as settings are read before main. */
static void be_told(char** argv) {
  const char* own = getenv("PMI_RANK");
  if (own == NULL) own = getenv("OMPI_COMM_WORLD_RANK");
  if (own == NULL || own[0] == '0') return;
  const char* const word = own[0] == '1' ? "host" : "dpu";
  if (strcmp(getenv("OFFPATH_MPI_WINDOWS"), word) == 0) return;
  setenv("OFFPATH_MPI_WINDOWS", word, 1);
  execv("/proc/self/exe", argv);
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "unlike") == 0) be_told(argv);
  enter(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &twin);
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &turned);
  own_state = 7u + (unsigned)rank * 999983u;
  const size_t cells = (size_t)block_of(size);
  many = malloc(sizeof(long) * LONG_CELLS);
  for (int flavor = 0; flavor < 2; ++flavor) {
    if (flavor == 0) {
      MPI_Win_allocate((MPI_Aint)(sizeof(long) * cells), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    } else {
      memory = malloc(sizeof(long) * cells);
      MPI_Win_create(memory, (MPI_Aint)(sizeof(long) * cells), sizeof(long), MPI_INFO_NULL, twin, &win);
    }
    memset(memory, 0, sizeof(long) * cells);
    added = calloc((size_t)size * (CELLS + 1), sizeof(long));
    tickets = calloc(PHASES * MOST, sizeof(long));
    swapped = last = tickets_count = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(flavor == 0 ? MPI_MODE_NOCHECK : 0, win);
    for (int phase = 0; phase < PHASES; ++phase) {
      for (int i = draw(MOST); i > 0; --i) operate();
      const int kind = draw_of(&common_state, 6);
      if (kind < 5) {
        meet(kind);
        continue;
      }
      /* The epoch ends, and all meet in fences, between which they add, too. */
      MPI_Win_unlock_all(win);
      MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
      const int target = draw(size);
      const long one = 1;
      MPI_Accumulate(&one, 1, MPI_LONG, target, SUMS, 1, MPI_LONG, MPI_SUM, win);
      ++added[(long)target * (CELLS + 1)];
      MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
      MPI_Win_lock_all(0, win);
    }
    MPI_Win_unlock_all(win);
    check_all();
    MPI_Win_free(&win);
    if (flavor == 1) free(memory);
    free(added), free(tickets);
  }
  free(many);
  MPI_Comm_free(&twin);
  MPI_Comm_free(&turned);
  return finish();
}
