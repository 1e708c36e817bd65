/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "watch/table.h"

#include "watch/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

_Atomic uint32_t offpath_watch_covered;
_Atomic uint32_t offpath_watch_doubts;
offpath_watch_entry_t offpath_watch_entries[OFFPATH_WATCH_ENTRIES];
offpath_watch_source_t offpath_watch_sources[OFFPATH_WATCH_SOURCES];

static _Atomic uint32_t used_entries; /* all beyond were never used */
/* A signal handler may fork on a thread that has it. */
static pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

int offpath_watch_lock(void) { return pthread_mutex_lock(&mutex) == 0; }
void offpath_watch_renew_lock(void) { mutex = (pthread_mutex_t)PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP; }
void offpath_watch_unlock(void) { pthread_mutex_unlock(&mutex); }

int offpath_watch_overlaps(uint64_t begin, uint64_t end) {
  const uint32_t used = atomic_load_explicit(&used_entries, memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    const uint64_t entry_end = atomic_load_explicit(&offpath_watch_entries[i].end, memory_order_acquire);
    if (begin < entry_end && atomic_load_explicit(&offpath_watch_entries[i].begin, memory_order_relaxed) < end)
      return 1;
  }
  return 0;
}

const offpath_watch_source_t* offpath_watch_source_of(const offpath_map_t* map) {
  if (map->inode == 0 || map->permissions[3] != 's') return NULL;
  for (int i = 0; i < OFFPATH_WATCH_SOURCES; ++i) {
    const offpath_watch_source_t* source = &offpath_watch_sources[i];
    if (source->used && source->inode == map->inode && source->device == map->device) return source;
  }
  return NULL;
}

static int join(int memfd, uint64_t mapping, uint64_t bytes) {
  const int saved_errno = errno;
  struct stat info;
  int result = -1;
  if (fstat(memfd, &info) == 0) {
    offpath_watch_lock();
    for (int i = 0; i < OFFPATH_WATCH_SOURCES && result < 0; ++i) {
      offpath_watch_source_t* source = &offpath_watch_sources[i];
      const int file = source->used ? -1 : fcntl(memfd, F_DUPFD_CLOEXEC, 0);
      if (file < 0) continue;
      const uint64_t device = (uint64_t)major(info.st_dev) << 32 | minor(info.st_dev);
      *source = (offpath_watch_source_t){1, file, device, info.st_ino, mapping, bytes};
      result = i;
    }
    offpath_watch_unlock();
    if (result >= 0) offpath_watch_follow_forks();
  }
  errno = saved_errno;
  return result;
}

static void leave(int source, int pages_stay) {
  if (source < 0 || source >= OFFPATH_WATCH_SOURCES) return;
  const int saved_errno = errno;
  offpath_watch_lock();
  offpath_watch_sources[source].bytes = 0;
  if (offpath_watch_sources[source].used && !pages_stay) {
    close(offpath_watch_sources[source].file);
    offpath_watch_sources[source].used = 0;
  }
  offpath_watch_unlock();
  errno = saved_errno;
}

/* With the lock. */
static int cover(uint64_t begin, uint64_t end) {
  for (uint32_t i = 0; i < OFFPATH_WATCH_ENTRIES; ++i) {
    offpath_watch_entry_t* entry = &offpath_watch_entries[i];
    if (atomic_load_explicit(&entry->end, memory_order_relaxed) != 0) continue;
    atomic_store_explicit(&entry->begin, begin, memory_order_relaxed);
    atomic_store_explicit(&entry->end, end, memory_order_release);
    if (i >= atomic_load_explicit(&used_entries, memory_order_relaxed))
      atomic_store_explicit(&used_entries, i + 1, memory_order_release);
    atomic_fetch_add(&offpath_watch_covered, 1);
    return (int)i;
  }
  return -1;
}

static void extend(int entry, uint64_t end) {
  if (entry >= 0 && entry < OFFPATH_WATCH_ENTRIES) atomic_store(&offpath_watch_entries[entry].end, end);
}

static void uncover(int entry) {
  if (entry < 0 || entry >= OFFPATH_WATCH_ENTRIES) return;
  if (atomic_exchange(&offpath_watch_entries[entry].end, 0) != 0) atomic_fetch_sub(&offpath_watch_covered, 1);
}

static void begin(void) { offpath_watch_lock(); }
static uint32_t doubts(void) { return atomic_load_explicit(&offpath_watch_doubts, memory_order_acquire); }
static uint32_t forks(void) { return atomic_load(&offpath_watch_forks); }

__attribute__((visibility("default"))) const offpath_watch_t* offpath_watch_open(void) {
  static const offpath_watch_t interface = {sizeof(interface),
                                            offpath_watch_probe,
                                            join,
                                            leave,
                                            begin,
                                            offpath_watch_unlock,
                                            cover,
                                            extend,
                                            uncover,
                                            doubts,
                                            forks,
                                            offpath_watch_keep,
                                            offpath_watch_release,
                                            offpath_watch_is_kept};
  return &interface;
}
