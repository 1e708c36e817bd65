/* SPDX-License-Identifier: BSD-3-Clause
 * A child gets copies of the moved pages, as if they were private. It makes them itself, alone in its address space; the
 * parent waits inside fork() until it has, so it cannot write them first. Other threads of the parent can: to the child
 * their writes happen before the fork or after it, byte by byte. */
#define _GNU_SOURCE
#include "watch/gate.h"
#include "watch/table.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

_Atomic uint32_t offpath_watch_forks;

static offpath_gate_t copied = {{-1, -1}}; /* open while there is a fork with covered memory; with the lock */
static int locked;                         /* by this fork */
static int following;

static void before_fork(void) {
  const int saved_errno = errno;
  locked = offpath_watch_lock();
  if (atomic_load(&offpath_watch_covered) != 0) {
    atomic_fetch_add(&offpath_watch_forks, 1);
    offpath_gate_open(&copied);
  }
  errno = saved_errno;
}

static void after_in_parent(void) {
  const int saved_errno = errno;
  offpath_gate_await(&copied);
  if (locked) offpath_watch_unlock();
  errno = saved_errno;
}

/* A mapping of moved pages; the client's own is not. */
static void copy_mapping(const offpath_map_t* map) {
  const offpath_watch_source_t* source = offpath_watch_source_of(map);
  if (source == NULL || (map->begin >= source->mapping && map->end <= source->mapping + source->bytes)) return;
  void* place = (void*)(uintptr_t)map->begin;
  const size_t bytes = map->end - map->begin;
  const int protection = (map->permissions[0] == 'r' ? PROT_READ : 0) | (map->permissions[1] == 'w' ? PROT_WRITE : 0);
  const int both = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
  /* The same pages until they are written to: then they are the child's. So each is, now. */
  if (offpath_watch_mmap(place, bytes, both, flags, source->file, (off_t)map->offset) != place) return;
  if (offpath_watch_madvise(place, bytes, MADV_POPULATE_WRITE) != 0) { /* before Linux 5.14 */
    for (volatile char *page = place, *end = page + bytes; page < end; page += 4096) *page = *page;
  }
  if (protection != both) mprotect(place, bytes, protection);
}

enum { BATCH = 64 };
typedef struct batch {
  uint64_t from;
  int count;
  offpath_map_t maps[BATCH];
} batch_t;

static int collect(const offpath_map_t* map, void* argument) {
  batch_t* batch = argument;
  if (map->begin >= batch->from && offpath_watch_source_of(map) != NULL) batch->maps[batch->count++] = *map;
  return batch->count == BATCH;
}

static void after_in_child(void) {
  const int saved_errno = errno;
  offpath_gate_enter(&copied);
  if (atomic_load(&offpath_watch_covered) != 0) {
    batch_t batch = {0};
    const offpath_maps_visitor_t visitor = {collect, NULL, &batch};
    do {
      batch.count = 0;
      if (offpath_maps_visit("/proc/self/maps", &visitor) != 0) break;
      for (int i = 0; i < batch.count; ++i) {
        copy_mapping(&batch.maps[i]);
        batch.from = batch.maps[i].end;
      }
    } while (batch.count == BATCH);
  }
  for (int i = 0; i < OFFPATH_WATCH_ENTRIES; ++i) offpath_watch_entries[i].end = 0;
  offpath_watch_covered = 0;
  for (int i = 0; i < OFFPATH_WATCH_SOURCES; ++i) {
    if (offpath_watch_sources[i].used) close(offpath_watch_sources[i].file);
    offpath_watch_sources[i].used = 0;
  }
  offpath_watch_forget_kept();
  offpath_gate_pass(&copied);
  offpath_watch_renew_lock();
  errno = saved_errno;
}

void offpath_watch_follow_forks(void) {
  offpath_watch_lock();
  const int first = !following;
  following = 1;
  offpath_watch_unlock();
  if (first) pthread_atfork(before_fork, after_in_parent, after_in_child);
}
