/* SPDX-License-Identifier: BSD-3-Clause
 * Passive one-sided communication on a window whose puts and gets may go two ways: random operations against a model,
 * exclusive locks of several origins, a target that computes, and an epoch left open. OFFPATH_MPI_WINDOWS says the way.
 * Argument "kept": the last window is not freed. */
#include "world.h"

#include <time.h>

enum { SLOTS = 12, CELLS = 512, ROUNDS = 150, MOST = 5, TURNS = 40 };
enum { LOCKS, EXCLUSIVE, ALL, EPOCHS };

static MPI_Win win;
static long* memory; /* SLOTS of CELLS for each rank, then one that is everybody's */
static long* model;  /* what this rank's slots hold at each target */
static unsigned random_state;

static int draw(int below) {
  random_state = random_state * 1664525u + 1013904223u;
  return (int)((random_state >> 8) % (unsigned)below);
}

/* Odd ranks count in bytes. */
static MPI_Aint place(int target, long cell) { return target % 2 == 0 ? cell : cell * (MPI_Aint)sizeof(long); }
static MPI_Aint own(int target, int slot) { return place(target, ((long)rank * SLOTS + slot) * CELLS); }
static long* modelled(int target, int slot) { return model + ((long)target * SLOTS + slot) * CELLS; }
static MPI_Aint everybodys(int target) { return place(target, (long)size * SLOTS * CELLS); }

static void begin(int epoch, int only) {
  if (epoch == ALL) MPI_Win_lock_all(draw(2) ? MPI_MODE_NOCHECK : 0, win);
  if (epoch == EXCLUSIVE) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, only, 0, win);
  for (int i = 0; epoch == LOCKS && i < size; ++i) MPI_Win_lock(MPI_LOCK_SHARED, (rank + i) % size, 0, win);
}

static void end(int epoch, int only) {
  if (epoch == ALL) MPI_Win_unlock_all(win);
  if (epoch == EXCLUSIVE) MPI_Win_unlock(only, win);
  for (int i = 0; epoch == LOCKS && i < size; ++i) MPI_Win_unlock((rank + size - i) % size, win);
}

struct operation {
  int kind, target, slot, cells;
  long *data, *wanted;
};

static void post(struct operation* one) {
  long* const held = modelled(one->target, one->slot);
  const MPI_Aint at = own(one->target, one->slot);
  MPI_Request request;
  for (int i = 0; i < one->cells; ++i) one->data[i] = one->kind == 2 ? -1 : draw(1000000);
  switch (one->kind) {
    case 0:
    case 1:
      memcpy(held, one->data, sizeof(long) * one->cells);
      if (one->kind == 0) {
        MPI_Put(one->data, one->cells, MPI_LONG, one->target, at, one->cells, MPI_LONG, win);
        break;
      }
      MPI_Rput(one->data, one->cells, MPI_LONG, one->target, at, one->cells, MPI_LONG, win, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      break;
    case 2:
      memcpy(one->wanted, held, sizeof(long) * one->cells);
      MPI_Get(one->data, one->cells, MPI_LONG, one->target, at, one->cells, MPI_LONG, win);
      break;
    default:
      for (int i = 0; i < one->cells; ++i) held[i] += one->data[i];
      MPI_Accumulate(one->data, one->cells, MPI_LONG, one->target, at, one->cells, MPI_LONG, MPI_SUM, win);
  }
}

/* How a batch ends; afterwards what was got is there. */
static void complete(int epoch, int only, const struct operation* operations, int count) {
  switch (draw(4)) {
    case 0:
      MPI_Win_flush_local_all(win);
      for (int i = 0; i < count; ++i) MPI_Win_flush_local(operations[i].target, win);
      break;
    case 1:
      for (int i = 0; i < count; ++i) MPI_Win_flush(operations[i].target, win);
      return;
    case 2:
      break;
    default:
      end(epoch, only);
      begin(epoch, only);
      return;
  }
  MPI_Win_flush_all(win);
}

static void random_operations(void) {
  struct operation operations[MOST];
  int wrong = 0;
  for (int i = 0; i < MOST; ++i) {
    operations[i].data = malloc(sizeof(long) * CELLS);
    operations[i].wanted = malloc(sizeof(long) * CELLS);
  }
  for (int round = 0; round < ROUNDS; ++round) {
    /* Who holds one of several locks, and waits for another behind an exclusive one, may wait for itself: four do it. */
    const int epoch = size > 3 ? round % EPOCHS : draw(EPOCHS), only = draw(size), batches = 1 + draw(4);
    begin(epoch, only);
    for (int batch = 0; batch < batches; ++batch) {
      const int count = 1 + draw(MOST), first = draw(SLOTS);
      for (int i = 0; i < count; ++i) { /* no slot twice */
        const int target = epoch == EXCLUSIVE ? only : draw(size);
        operations[i].kind = draw(4);
        operations[i].target = target;
        operations[i].slot = (first + i) % SLOTS;
        operations[i].cells = 1 + draw(draw(4) == 0 ? CELLS : 16);
        post(&operations[i]);
      }
      complete(epoch, only, operations, count);
      for (int i = 0; i < count; ++i) {
        const struct operation* const one = &operations[i];
        if (one->kind == 2) wrong += memcmp(one->data, one->wanted, sizeof(long) * one->cells) != 0;
      }
    }
    end(epoch, only);
    if (size > 3) MPI_Barrier(MPI_COMM_WORLD);
  }
  report("what was got", wrong == 0);
  /* The whole model against the memory of the others. */
  long* const all = malloc(sizeof(long) * SLOTS * CELLS);
  MPI_Win_lock_all(0, win);
  for (int target = 0; target < size; ++target) {
    MPI_Get(all, SLOTS * CELLS, MPI_LONG, target, own(target, 0), SLOTS * CELLS, MPI_LONG, win);
    MPI_Win_flush(target, win);
    wrong += memcmp(all, modelled(target, 0), sizeof(long) * SLOTS * CELLS) != 0;
  }
  MPI_Win_unlock_all(win);
  report("what was left", wrong == 0);
  free(all);
  for (int i = 0; i < MOST; ++i) free(operations[i].data), free(operations[i].wanted);
}

/* The same block, got and put under an exclusive lock by everybody. */
static void exclusive(void) {
  long block[64], wrong = 0;
  for (int turn = 0; turn < TURNS; ++turn) {
    const int target = (rank + turn) % size;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    MPI_Get(block, 64, MPI_LONG, target, everybodys(target), 64, MPI_LONG, win);
    MPI_Win_flush(target, win);
    const long base = block[0];
    for (int i = 0; i < 64; ++i) wrong += block[i] != base + i, ++block[i];
    MPI_Put(block, 64, MPI_LONG, target, everybodys(target), 64, MPI_LONG, win);
    MPI_Win_unlock(target, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  long sum = 0;
  for (int target = 0; target < size; ++target) {
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    MPI_Get(block, 1, MPI_LONG, target, everybodys(target), 1, MPI_LONG, win);
    MPI_Win_unlock(target, win);
    sum += block[0];
  }
  report("exclusive locks", wrong == 0 && sum == (long)TURNS * size);
}

/* Rank 0 calls no MPI for some time. */
static void target_computes(void) {
  long sent[CELLS], got[CELLS];
  int ok = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    struct timespec begin_time, now;
    clock_gettime(CLOCK_MONOTONIC, &begin_time);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin_time.tv_sec) * 1000 + (now.tv_nsec - begin_time.tv_nsec) / 1000000 < 100);
  } else {
    MPI_Win_lock_all(0, win);
    for (int turn = 0; turn < 20; ++turn) {
      for (int i = 0; i < CELLS; ++i) sent[i] = value_of(rank, 0, i, turn);
      MPI_Put(sent, CELLS, MPI_LONG, 0, own(0, 0), CELLS, MPI_LONG, win);
      MPI_Win_flush(0, win);
      MPI_Get(got, CELLS, MPI_LONG, 0, own(0, 0), CELLS, MPI_LONG, win);
      MPI_Win_flush(0, win);
      ok &= memcmp(sent, got, sizeof(sent)) == 0;
    }
    MPI_Win_unlock_all(win);
  }
  report("a target that computes", ok);
}

/* What is asked first in an epoch after another kind of epoch: nothing of the native one is in its way. */
static void other_epochs(void) {
  long value = -1, mine = rank;
  MPI_Win_fence(0, win);
  MPI_Put(&mine, 1, MPI_LONG, (rank + 1) % size, own((rank + 1) % size, 0), 1, MPI_LONG, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  MPI_Win_lock(MPI_LOCK_SHARED, (rank + 1) % size, 0, win);
  MPI_Get(&value, 1, MPI_LONG, (rank + 1) % size, own((rank + 1) % size, 0), 1, MPI_LONG, win);
  MPI_Win_unlock((rank + 1) % size, win);
  report("after a fence", value == rank);
}

static void left_open(void) {
  long value = 5, got = -1;
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Win_lock_all(0, win);
  MPI_Put(&value, 1, MPI_LONG, rank, own(rank, 1), 1, MPI_LONG, win);
  MPI_Get(&got, 1, MPI_LONG, (rank + 1) % size, own((rank + 1) % size, 2), 1, MPI_LONG, win);
  const int ours = getenv("OFFPATH_MPI_WINDOWS") != NULL;
  report("an epoch left open", !ours || ends_with(MPI_Win_free(&win), MPI_ERR_RMA_SYNC));
  MPI_Win_unlock_all(win);
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  random_state = 77u + (unsigned)rank * 1000003u;
  const long cells = (long)size * SLOTS * CELLS + 64;
  const int unit = rank % 2 == 0 ? (int)sizeof(long) : 1;
  model = calloc((size_t)size * SLOTS * CELLS, sizeof(long));
  for (int flavor = 0; flavor < 2; ++flavor) {
    const MPI_Aint bytes = (MPI_Aint)sizeof(long) * cells;
    if (flavor == 0) {
      memory = malloc((size_t)bytes);
      MPI_Win_create(memory, bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    } else {
      MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    }
    memset(memory, 0, (size_t)bytes);
    memset(model, 0, sizeof(long) * (size_t)size * SLOTS * CELLS);
    for (int i = 0; i < 64; ++i) memory[cells - 64 + i] = i;
    MPI_Barrier(MPI_COMM_WORLD);
    random_operations();
    exclusive();
    target_computes();
    other_epochs();
    left_open();
    if (flavor == 1 && argc > 1 && strcmp(argv[1], "kept") == 0) break;
    MPI_Win_free(&win);
    if (flavor == 0) free(memory);
  }
  free(model);
  return finish();
}
