/* SPDX-License-Identifier: BSD-3-Clause
 * The interposed functions. What is behind them is looked up when the library is loaded, as looking up takes locks: a
 * malloc may call mmap holding its own. Until then there are only system calls.
 *
 * They have the C library's version, not as the default one: what programs and libraries were linked with finds them,
 * dlsym does not. Libraries that watch memory by changing the code of what dlsym finds (UCX, Open MPI) change the C
 * library's functions, which are behind ours, and not ours, which would cut them out. */
#define _GNU_SOURCE
#include "watch/table.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

/* An assembler's directive: not every compiler has an attribute for it. */
#define EXPORTED(name)                                             \
  __asm__(".symver hook_" name "," name "@" OFFPATH_LIBC_VERSION); \
  __attribute__((visibility("default"), used))

typedef void* mmap_function(void*, size_t, int, int, int, off_t);
typedef int munmap_function(void*, size_t);
typedef void* mremap_function(void*, size_t, size_t, int, void*);
typedef int madvise_function(void*, size_t, int);
typedef void* shmat_function(int, const void*, int);

static mmap_function* _Atomic next_mmap;
static munmap_function* _Atomic next_munmap;
static mremap_function* _Atomic next_mremap;
static madvise_function* _Atomic next_madvise;
static shmat_function* _Atomic next_shmat;

__attribute__((constructor)) static void find_next(void) {
  const int saved_errno = errno;
  next_mmap = (mmap_function*)dlsym(RTLD_NEXT, "mmap");
  next_munmap = (munmap_function*)dlsym(RTLD_NEXT, "munmap");
  next_mremap = (mremap_function*)dlsym(RTLD_NEXT, "mremap");
  next_madvise = (madvise_function*)dlsym(RTLD_NEXT, "madvise");
  next_shmat = (shmat_function*)dlsym(RTLD_NEXT, "shmat");
  errno = saved_errno;
}

/* The library's own functions, not the system calls: others (communication libraries) watch memory by changing these. */
void* offpath_watch_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  mmap_function* next = next_mmap;
  if (next != NULL) return next(address, bytes, protection, flags, file, offset);
  return (void*)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}

int offpath_watch_munmap(void* address, size_t bytes) {
  munmap_function* next = next_munmap;
  return next != NULL ? next(address, bytes) : (int)syscall(SYS_munmap, address, bytes);
}

int offpath_watch_madvise(void* address, size_t bytes, int advice) {
  madvise_function* next = next_madvise;
  return next != NULL ? next(address, bytes, advice) : (int)syscall(SYS_madvise, address, bytes, advice);
}

static void* pass_mremap(void* address, size_t bytes, size_t new_bytes, int flags, void* place) {
  mremap_function* next = next_mremap;
  if (next != NULL) return next(address, bytes, new_bytes, flags, place);
  return (void*)syscall(SYS_mremap, address, bytes, new_bytes, flags, place);
}

/* ---- are they called? ------------------------------------------------------------------------------------------- */

static _Atomic uint32_t called; /* a bit for each hook, while somebody wants to know */
static _Atomic int probing;

static void note_call(uint32_t bit) {
  if (atomic_load_explicit(&probing, memory_order_relaxed)) atomic_fetch_or(&called, bit);
}

uint32_t offpath_watch_probe(int begin) {
  if (begin) atomic_store(&called, 0);
  atomic_store(&probing, begin);
  return atomic_load(&called);
}

/* ---- what they do ----------------------------------------------------------------------------------------------- */

static uint64_t number_of(const void* address) { return (uint64_t)(uintptr_t)address; }

static size_t in_pages(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

static int is_covered(const void* address, size_t bytes) {
  if (atomic_load_explicit(&offpath_watch_covered, memory_order_relaxed) == 0) return 0;
  const uint64_t begin = number_of(address), end = begin + bytes;
  return end > begin && offpath_watch_overlaps(begin, end);
}

static void doubt(const void* address, size_t bytes) {
  if (is_covered(address, bytes)) atomic_fetch_add_explicit(&offpath_watch_doubts, 1, memory_order_release);
}

typedef struct range {
  uint64_t begin, end;
  uint64_t seen_to; /* see is_plain */
  int found, failed;
} range_t;

static range_t range_of(const void* address, size_t bytes) {
  const uint64_t begin = number_of(address);
  return (range_t){begin, begin + bytes, begin, 0, 0};
}

static int walk(int (*visit)(const offpath_map_t*, void*), range_t* range) {
  const offpath_maps_visitor_t visitor = {visit, NULL, range};
  return offpath_maps_visit("/proc/self/maps", &visitor);
}

static int is_ours(const offpath_map_t* map) {
  const offpath_watch_source_t* source = offpath_watch_source_of(map);
  return source != NULL && (map->begin < source->mapping || map->end > source->mapping + source->bytes);
}

/* Moved pages become private ones, zero. */
static int clear(const offpath_map_t* map, void* argument) {
  range_t* range = argument;
  if (map->begin >= range->end) return 1;
  const uint64_t begin = map->begin > range->begin ? map->begin : range->begin;
  const uint64_t end = map->end < range->end ? map->end : range->end;
  if (begin >= end || !is_ours(map)) return 0;
  const int protection = (map->permissions[0] == 'r' ? PROT_READ : 0) | (map->permissions[1] == 'w' ? PROT_WRITE : 0);
  void* place = (void*)(uintptr_t)begin;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  range->failed = offpath_watch_mmap(place, end - begin, protection, flags, -1, 0) != place;
  return range->failed;
}

static int find_ours(const offpath_map_t* map, void* argument) {
  range_t* range = argument;
  if (map->begin < range->end && range->begin < map->end && is_ours(map)) range->found = 1;
  return map->begin >= range->end || range->found;
}

/* Is all of it readable and writable memory of no file, or moved? */
static int is_plain(const offpath_map_t* map, void* argument) {
  range_t* range = argument;
  if (map->begin >= range->end) return 1;
  if (map->end <= range->begin) return 0;
  const int private_memory = map->inode == 0 && map->permissions[3] == 'p';
  const int good = map->begin <= range->seen_to && map->permissions[0] == 'r' && map->permissions[1] == 'w';
  if (!good || !(private_memory || is_ours(map))) return 1;
  range->seen_to = map->end;
  return 0;
}

/* The kernel resizes one mapping, which moved memory is not to it. */
static void* resize(void* address, size_t bytes, size_t new_bytes, int flags, void* wanted) {
  const int private_memory = MAP_PRIVATE | MAP_ANONYMOUS;
  const int fixed = (flags & MREMAP_FIXED) != 0;
  char* end = (char*)address + bytes;
  if (!fixed) {
    const size_t more = new_bytes - bytes;
    void* behind = offpath_watch_mmap(end, more, PROT_READ | PROT_WRITE, private_memory | MAP_FIXED_NOREPLACE, -1, 0);
    if (behind == (void*)end) return address;
    if (behind != MAP_FAILED) offpath_watch_munmap(behind, more); /* an old kernel puts it elsewhere */
    if ((flags & MREMAP_MAYMOVE) == 0) {
      errno = ENOMEM;
      return MAP_FAILED;
    }
  }
  void* place =
      offpath_watch_mmap(wanted, new_bytes, PROT_READ | PROT_WRITE, private_memory | (fixed ? MAP_FIXED : 0), -1, 0);
  if (place == MAP_FAILED) return place;
  memcpy(place, address, bytes < new_bytes ? bytes : new_bytes);
  offpath_watch_munmap(address, bytes);
  return place;
}

EXPORTED("mmap") void* hook_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  note_call(1);
  void* place = offpath_watch_mmap(address, bytes, protection, flags, file, offset);
  if (place != MAP_FAILED) doubt(place, bytes);
  return place;
}

EXPORTED("mmap64") void* hook_mmap64(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  return hook_mmap(address, bytes, protection, flags, file, offset);
}

EXPORTED("munmap") int hook_munmap(void* address, size_t bytes) {
  note_call(2);
  doubt(address, bytes);
  return offpath_watch_munmap(address, bytes);
}

EXPORTED("mremap") void* hook_mremap(void* address, size_t bytes, size_t new_bytes, int flags, ...) {
  note_call(4);
  va_list arguments;
  va_start(arguments, flags);
  void* wanted = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : NULL;
  va_end(arguments);
  const size_t old = in_pages(bytes), new = in_pages(new_bytes);
  const int moves = new > old || (flags & MREMAP_FIXED) != 0;
  int by_us = 0;
  if (is_covered(address, old)) {
    range_t range = range_of(address, old);
    const uint64_t to = number_of(wanted);
    const int apart = wanted == NULL || to + new <= range.begin || to >= range.end;
    by_us = moves && new > 0 && apart&& walk(find_ours, &range) == 0 && range.found&& walk(is_plain, &range) == 0 &&
            range.seen_to >= range.end && (flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED)) == 0;
    doubt(address, old);
  }
  void* place =
      by_us ? resize(address, old, new, flags, wanted) : pass_mremap(address, bytes, new_bytes, flags, wanted);
  if (place != MAP_FAILED) doubt(place, new_bytes);
  return place;
}

EXPORTED("madvise") int hook_madvise(void* address, size_t bytes, int advice) {
  enum { DONTNEED_LOCKED = 24 };
  note_call(8);
  const int gives_up = advice == MADV_DONTNEED || advice == MADV_FREE || advice == DONTNEED_LOCKED;
  const int aligned = number_of(address) % 4096 == 0;
  if ((!gives_up && advice != MADV_REMOVE) || !aligned || !is_covered(address, bytes))
    return offpath_watch_madvise(address, bytes, advice);
  range_t range = range_of(address, in_pages(bytes));
  /* Only memory of a file can be removed; the program believes that this is of none. */
  const int read = walk(gives_up ? clear : find_ours, &range);
  if (gives_up) doubt(address, bytes);
  if (read == 0 && !range.failed && !range.found) return offpath_watch_madvise(address, bytes, advice);
  errno = gives_up ? EAGAIN : EINVAL;
  return -1;
}

EXPORTED("shmat") void* hook_shmat(int id, const void* address, int flags) {
  shmat_function* next = next_shmat;
  void* place = next != NULL ? next(id, address, flags) : (void*)syscall(SYS_shmat, id, address, flags);
  if (place != (void*)-1 && atomic_load_explicit(&offpath_watch_covered, memory_order_relaxed) != 0)
    atomic_fetch_add_explicit(&offpath_watch_doubts, 1, memory_order_release); /* its length is not known here */
  return place;
}
