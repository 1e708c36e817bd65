/* SPDX-License-Identifier: BSD-3-Clause
 * What has no defined order but a defined total: everybody at the same counter, and the values that were seen. */
#include "rma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRepeats = 40, kCells = 5, kTarget = 0, kTag = 4712 };

typedef struct Counters {
  MPI_Win window;
  int64_t* cells; /* of this rank; all ranks use those of kTarget */
  int rank, size;
} Counters;

static Counters counters_create(void) {
  Counters counters;
  MPI_Comm_rank(MPI_COMM_WORLD, &counters.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &counters.size);
  counters.cells = calloc(kCells, sizeof(int64_t));
  if (counters.cells == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_Win_create(counters.cells, kCells * sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD,
                 &counters.window);
  MPI_Barrier(MPI_COMM_WORLD);
  return counters;
}

/* Every cell must have been counted up kRepeats times by every rank. */
static bool counters_free(Counters* counters, const char* name, uint64_t* hash) {
  bool good = true;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, counters->rank, 0, counters->window);
  const int64_t total = counters->rank == kTarget ? (int64_t)kRepeats * counters->size : 0;
  for (int i = 0; i < kCells; ++i) {
    if (counters->cells[i] != total)
      fprintf(stderr, "%s: cell %d of rank %d holds %lld instead of %lld\n", name, i, counters->rank,
              (long long)counters->cells[i], (long long)total);
    good = good && counters->cells[i] == total;
  }
  *hash = hash_bytes(*hash, counters->cells, kCells * sizeof(int64_t));
  MPI_Win_unlock(counters->rank, counters->window);
  MPI_Win_free(&counters->window);
  free(counters->cells);
  return good;
}

/* On the target: the values that all ranks fetched are 0, 1, 2, ..., each once. */
static bool each_once(const int64_t* fetched, int rank, int size, const char* name) {
  if (rank != kTarget) {
    MPI_Send(fetched, kRepeats, MPI_INT64_T, kTarget, kTag, MPI_COMM_WORLD);
    return true;
  }
  bool seen[kMaxRanks * kRepeats] = {false}, good = true;
  int64_t values[kRepeats];
  for (int from = 0; from < size; ++from) {
    memcpy(values, fetched, sizeof(values));
    if (from != kTarget) MPI_Recv(values, kRepeats, MPI_INT64_T, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < kRepeats; ++i) {
      const bool fresh = values[i] >= 0 && values[i] < (int64_t)kRepeats * size && !seen[values[i]];
      if (!fresh) fprintf(stderr, "%s: %lld was fetched twice or out of range\n", name, (long long)values[i]);
      if (fresh) seen[values[i]] = true;
      good = good && fresh;
    }
  }
  return good;
}

bool contend_fetch_and_op(uint64_t* hash) {
  Counters counters = counters_create();
  const int64_t one = 1;
  int64_t fetched[kCells][kRepeats];
  MPI_Win_lock_all(0, counters.window);
  for (int i = 0; i < kRepeats; ++i)
    for (int cell = 0; cell < kCells; ++cell) {
      MPI_Fetch_and_op(&one, &fetched[cell][i], MPI_INT64_T, kTarget, cell, MPI_SUM, counters.window);
      if (i % 4 == 0) MPI_Win_flush(kTarget, counters.window);
    }
  MPI_Win_unlock_all(counters.window);
  bool good = true;
  for (int cell = 0; cell < kCells; ++cell)
    good = each_once(fetched[cell], counters.rank, counters.size, "fetch_and_op") && good;
  return counters_free(&counters, "fetch_and_op", hash) && good;
}

/* Atomic for each element, not for all of them together. */
bool contend_get_accumulate(uint64_t* hash) {
  Counters counters = counters_create();
  int64_t ones[kCells], before[kRepeats][kCells], fetched[kRepeats];
  for (int i = 0; i < kCells; ++i) ones[i] = 1;
  MPI_Win_lock(MPI_LOCK_SHARED, kTarget, 0, counters.window);
  for (int i = 0; i < kRepeats; ++i)
    MPI_Get_accumulate(ones, kCells, MPI_INT64_T, before[i], kCells, MPI_INT64_T, kTarget, 0, kCells, MPI_INT64_T,
                       MPI_SUM, counters.window);
  MPI_Win_unlock(kTarget, counters.window);
  bool good = true;
  for (int cell = 0; cell < kCells; ++cell) {
    for (int i = 0; i < kRepeats; ++i) fetched[i] = before[i][cell];
    good = each_once(fetched, counters.rank, counters.size, "get_accumulate") && good;
  }
  return counters_free(&counters, "get_accumulate", hash) && good;
}

bool contend_compare_and_swap(uint64_t* hash) {
  Counters counters = counters_create();
  MPI_Win_lock_all(0, counters.window);
  for (int i = 0; i < kRepeats; ++i)
    for (int cell = 0; cell < kCells; ++cell) {
      int64_t expected = 0, found = 0;
      do {
        expected = found;
        const int64_t next = expected + 1;
        MPI_Compare_and_swap(&next, &expected, &found, MPI_INT64_T, kTarget, cell, counters.window);
        MPI_Win_flush(kTarget, counters.window);
      } while (found != expected);
    }
  MPI_Win_unlock_all(counters.window);
  return counters_free(&counters, "compare_and_swap", hash);
}

/* What is read under an exclusive lock is what the last holder has written, whole. */
bool contend_lock(uint64_t* hash) {
  Counters counters = counters_create();
  bool good = true;
  for (int i = 0; i < kRepeats; ++i) {
    int64_t cells[kCells];
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kTarget, 0, counters.window);
    MPI_Get(cells, kCells, MPI_INT64_T, kTarget, 0, kCells, MPI_INT64_T, counters.window);
    MPI_Win_flush(kTarget, counters.window);
    for (int cell = 0; cell < kCells; ++cell) good = good && cells[cell] == cells[0];
    for (int cell = 0; cell < kCells; ++cell) ++cells[cell];
    MPI_Put(cells, kCells, MPI_INT64_T, kTarget, 0, kCells, MPI_INT64_T, counters.window);
    MPI_Win_unlock(kTarget, counters.window);
  }
  if (!good) fprintf(stderr, "lock: two held it at once\n");
  return counters_free(&counters, "lock", hash) && good;
}
