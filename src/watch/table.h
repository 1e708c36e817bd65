/* SPDX-License-Identifier: BSD-3-Clause
 * What is covered. Written under the lock, read by hooks without. Internal to watch/.
 */
#ifndef OFFPATH_WATCH_TABLE_H
#define OFFPATH_WATCH_TABLE_H

#include "watch/maps.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

enum { OFFPATH_WATCH_ENTRIES = 2048, OFFPATH_WATCH_SOURCES = 16 };

typedef struct offpath_watch_source {
  int used;
  int file; /* ours */
  uint64_t device, inode;
  uint64_t mapping, bytes; /* of the client itself; 0 bytes: it has left */
} offpath_watch_source_t;

typedef struct offpath_watch_entry {
  _Atomic uint64_t begin, end; /* end 0: free */
} offpath_watch_entry_t;

extern _Atomic uint32_t offpath_watch_covered; /* entries in use */
extern _Atomic uint32_t offpath_watch_doubts;
extern offpath_watch_entry_t offpath_watch_entries[OFFPATH_WATCH_ENTRIES];
extern offpath_watch_source_t offpath_watch_sources[OFFPATH_WATCH_SOURCES];

/* Whether an entry overlaps. May say yes of one that is just being changed: look at the maps before doing anything. */
int offpath_watch_overlaps(uint64_t begin, uint64_t end);
/* The source that a mapping is of, if the mapping is shared; NULL: none. */
const offpath_watch_source_t* offpath_watch_source_of(const offpath_map_t* map);

/* The library's functions behind ours. Before they are known (the program is still being loaded) the system calls. */
void* offpath_watch_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset);
int offpath_watch_munmap(void* address, size_t bytes);
int offpath_watch_madvise(void* address, size_t bytes, int advice);

/* See watch.h. */
uint32_t offpath_watch_probe(int begin);
/* 0: this thread has it already. */
int offpath_watch_lock(void);
void offpath_watch_unlock(void);
/* In a child, whose only thread is not the one that has it. */
void offpath_watch_renew_lock(void);
void offpath_watch_keep(uint64_t begin, uint64_t end);
void offpath_watch_release(uint64_t begin, uint64_t end);
int offpath_watch_is_kept(uint64_t begin, uint64_t end); /* with the lock */
void offpath_watch_forget_kept(void);                    /* in a child */
/* Registers the fork handlers, once. */
void offpath_watch_follow_forks(void);
extern _Atomic uint32_t offpath_watch_forks;

#endif
