/* SPDX-License-Identifier: BSD-3-Clause
 * Made in several ways, over several communicators, with displacement units that differ by rank. */
#include "rma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char* const window_names[kWindows] = {"create", "allocate", "part", "dynamic"};
Window windows[kWindows];

/* Long enough for several messages of any transport. */
enum { kLongGrain = 509 };

size_t region_bytes(const Window* window) { return (size_t)kPositions * (size_t)window->grain * kMaxElementBytes; }
size_t window_bytes(const Window* window) { return kTypes * region_bytes(window); }

unsigned char* model_position(const Window* window, int rank, int region, int position) {
  const size_t offset = (size_t)position * (size_t)window->grain * (size_t)element_at(region)->bytes;
  return window->models[rank] + (size_t)region * region_bytes(window) + offset;
}

static MPI_Comm make_comm(int color, int key) {
  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
  return comm;
}

static void* reserve(size_t bytes) {
  void* memory = calloc(1, bytes);
  if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  return memory;
}

static void make_handle(Window* window, int kind) {
  const MPI_Aint bytes = (MPI_Aint)window_bytes(window);
  const int unit = window->units[window->rank];
  if (kind == 1) {
    MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, window->comm, &window->memory, &window->handle);
    return;
  }
  window->memory = reserve((size_t)bytes);
  if (!window->dynamic) {
    MPI_Win_create(window->memory, bytes, unit, MPI_INFO_NULL, window->comm, &window->handle);
    return;
  }
  MPI_Win_create_dynamic(MPI_INFO_NULL, window->comm, &window->handle);
  MPI_Win_attach(window->handle, window->memory, bytes);
  MPI_Aint base;
  MPI_Get_address(window->memory, &base);
  MPI_Allgather(&base, 1, MPI_AINT, window->bases, 1, MPI_AINT, window->comm);
}

static void window_create(int kind, int grain, bool member, int key) {
  Window* window = &windows[kind];
  *window =
      (Window){.name = window_names[kind], .grain = grain, .dynamic = kind == 3, .rank = -1, .handle = MPI_WIN_NULL};
  window->comm = make_comm(member ? 0 : MPI_UNDEFINED, key);
  int rank, world;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  if (member) {
    MPI_Comm_rank(window->comm, &window->rank);
    MPI_Comm_size(window->comm, &window->size);
  }
  /* Also those who are not in it know how large it is: they make the same random program. */
  MPI_Allreduce(MPI_IN_PLACE, &window->size, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  static const int kUnits[] = {1, 4, 8};
  for (int i = 0; i < window->size; ++i) {
    window->units[i] = window->dynamic ? 1 : kUnits[i % 3];
    window->models[i] = reserve(window_bytes(window));
  }
  if (member) make_handle(window, kind);
}

void windows_create(uint64_t seed) {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  window_create(0, 1, true, rank);
  window_create(1, kLongGrain, true, -rank);
  window_create(2, 3, size == 2 || rank != 0, rank);
  window_create(3, 1, true, rank);
  for (int i = 0; i < kWindows; ++i) {
    Window* window = &windows[i];
    if (window->rank >= 0) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, window->rank, 0, window->handle);
      memset(window->memory, 0, window_bytes(window));
    }
    for (int owner = 0; owner < window->size; ++owner)
      for (int region = 0; region < kTypes; ++region)
        window_store(window, owner, region, mix(seed) + (uint64_t)(1000 * i + 10 * owner + region));
    if (window->rank >= 0) MPI_Win_unlock(window->rank, window->handle);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

void windows_free(void) {
  for (int i = 0; i < kWindows; ++i) {
    Window* window = &windows[i];
    for (int rank = 0; rank < window->size; ++rank) free(window->models[rank]);
    if (window->rank < 0) continue;
    if (window->dynamic) {
      MPI_Barrier(window->comm);
      MPI_Win_detach(window->handle, window->memory);
    }
    MPI_Win_free(&window->handle);
    if (i != 1) free(window->memory);
    MPI_Comm_free(&window->comm);
  }
}

void window_store(Window* window, int rank, int region, uint64_t seed) {
  const Element* element = element_at(region);
  unsigned char* model = model_position(window, rank, region, 0);
  const int elements = kPositions * window->grain;
  for (int i = 0; i < elements; ++i) element_value(element, mix(seed) + (uint64_t)(2 * i), model + i * element->bytes);
  if (rank != window->rank) return;
  memcpy(window->memory + (model - window->models[rank]), model, (size_t)(elements * element->bytes));
}

bool window_check(const Window* window, int episode, uint64_t* hash) {
  const unsigned char* model = window->models[window->rank];
  const size_t bytes = window_bytes(window);
  *hash = hash_bytes(*hash, window->memory, bytes);
  if (memcmp(window->memory, model, bytes) == 0) return true;
  size_t at = 0;
  while (window->memory[at] == model[at]) ++at;
  const int region = (int)(at / region_bytes(window));
  fprintf(stderr, "episode %d: window %s of rank %d, region %d (%s), byte %zu: %02x instead of %02x\n", episode,
          window->name, window->rank, region, element_at(region)->name, at % region_bytes(window), window->memory[at],
          model[at]);
  return false;
}
