/* SPDX-License-Identifier: BSD-3-Clause
 * What somebody else may write at any time, or has registered with a device: of all clients of the process, as each would
 * move it. Under the lock. */
#define _GNU_SOURCE
#include "watch/table.h"

enum { MOST = 4096 }; /* far more than programs register one by one */

static struct { uint64_t begin, end; } kept[MOST];
static uint32_t kept_count;
static uint64_t kept_more; /* that were too many to remember: everything is kept until they are released */

void offpath_watch_keep(uint64_t begin, uint64_t end) {
  offpath_watch_follow_forks();
  offpath_watch_lock();
  if (kept_count < MOST) {
    kept[kept_count].begin = begin;
    kept[kept_count++].end = end;
  } else {
    ++kept_more;
  }
  offpath_watch_unlock();
}

void offpath_watch_release(uint64_t begin, uint64_t end) {
  offpath_watch_lock();
  uint32_t at = kept_count;
  while (at > 0 && (kept[at - 1].begin != begin || kept[at - 1].end != end)) --at;
  if (at > 0) {
    kept[at - 1] = kept[--kept_count];
  } else if (kept_more > 0) {
    --kept_more;
  }
  offpath_watch_unlock();
}

int offpath_watch_is_kept(uint64_t begin, uint64_t end) {
  for (uint32_t i = 0; i < kept_count; ++i) {
    if (kept[i].begin < end && begin < kept[i].end) return 1;
  }
  return kept_more > 0;
}

void offpath_watch_forget_kept(void) { kept_count = 0, kept_more = 0; }
