// SPDX-License-Identifier: BSD-3-Clause
// Calls that order or complete one-sided operations. Ours are completed first, then the native library does its part,
// for its own operations and for what stays native: barriers, locks, the heap.
#include "shmem/job.hpp"
#include "shmem/natives.hpp"

namespace offpath::shmem {
namespace {

void complete() {
  if (job.serves()) job.quiet();
}

}  // namespace
}  // namespace offpath::shmem

using namespace offpath::shmem;

extern "C" {

// Later puts may pass earlier ones unless these are done: a fence costs what a quiet costs.
void shmem_fence() {
  complete();
  native().shmem_fence();
}

void shmem_ctx_fence(shmem_ctx_t ctx) {
  complete();
  native().shmem_ctx_fence(ctx);
}

void shmem_quiet() {
  complete();
  native().shmem_quiet();
}

void shmem_ctx_quiet(shmem_ctx_t ctx) {
  complete();
  native().shmem_ctx_quiet(ctx);
}

// Offloaded, every context is the default one: what it orders apart natively has no traffic, and Open MPI 4.1.4 hangs
// over TCP in shmem_finalize after contexts were used.
int shmem_ctx_create(long options, shmem_ctx_t* ctx) {
  if (!job.serves_memory()) return native().shmem_ctx_create(options, ctx);
  *ctx = *native().default_context;
  return 0;
}

void shmem_ctx_destroy(shmem_ctx_t ctx) {
  complete();
  if (ctx != *native().default_context) native().shmem_ctx_destroy(ctx);
}

void shmem_barrier_all() {
  complete();
  native().shmem_barrier_all();
}

void shmem_barrier(int first, int log_stride, int size, long* sync) {
  complete();
  native().shmem_barrier(first, log_stride, size, sync);
}

// Locks: what was done under the lock is done when the next one holds it.

void shmem_set_lock(volatile long* lock) {
  const Inside inside;
  native().shmem_set_lock(lock);
}

int shmem_test_lock(volatile long* lock) {
  const Inside inside;
  return native().shmem_test_lock(lock);
}

void shmem_clear_lock(volatile long* lock) {
  complete();
  const Inside inside;
  native().shmem_clear_lock(lock);
}

// The heap: each of these is a barrier too.

void* shmem_malloc(size_t bytes) {
  complete();
  return native().shmem_malloc(bytes);
}

void* shmem_calloc(size_t count, size_t bytes) {
  complete();
  return native().shmem_calloc(count, bytes);
}

void* shmem_align(size_t alignment, size_t bytes) {
  complete();
  return native().shmem_align(alignment, bytes);
}

void* shmem_realloc(void* block, size_t bytes) {
  complete();
  return native().shmem_realloc(block, bytes);
}

void shmem_free(void* block) {
  complete();
  native().shmem_free(block);
}

void* shmalloc(size_t bytes) {
  complete();
  return native().shmalloc(bytes);
}

void* shmemalign(size_t alignment, size_t bytes) {
  complete();
  return native().shmemalign(alignment, bytes);
}

void* shrealloc(void* block, size_t bytes) {
  complete();
  return native().shrealloc(block, bytes);
}

void shfree(void* block) {
  complete();
  native().shfree(block);
}

#ifdef OFFPATH_SHMEM_HAS_HINTS
void* shmem_malloc_with_hints(size_t bytes, long hints) {
  complete();
  return native().shmem_malloc_with_hints(bytes, hints);
}
OFFPATH_SHMEM_PROFILED(shmem_malloc_with_hints)
#else
void* shmemx_malloc_with_hint(size_t bytes, long hint) {
  complete();
  return native().shmemx_malloc_with_hint(bytes, hint);
}
OFFPATH_SHMEM_PROFILED(shmemx_malloc_with_hint)
#endif

OFFPATH_SHMEM_PROFILED(shmem_fence)
OFFPATH_SHMEM_PROFILED(shmem_ctx_fence)
OFFPATH_SHMEM_PROFILED(shmem_quiet)
OFFPATH_SHMEM_PROFILED(shmem_ctx_quiet)
OFFPATH_SHMEM_PROFILED(shmem_ctx_create)
OFFPATH_SHMEM_PROFILED(shmem_ctx_destroy)
OFFPATH_SHMEM_PROFILED(shmem_barrier_all)
OFFPATH_SHMEM_PROFILED(shmem_barrier)
OFFPATH_SHMEM_PROFILED(shmem_set_lock)
OFFPATH_SHMEM_PROFILED(shmem_test_lock)
OFFPATH_SHMEM_PROFILED(shmem_clear_lock)
OFFPATH_SHMEM_PROFILED(shmem_malloc)
OFFPATH_SHMEM_PROFILED(shmem_calloc)
OFFPATH_SHMEM_PROFILED(shmem_align)
OFFPATH_SHMEM_PROFILED(shmem_realloc)
OFFPATH_SHMEM_PROFILED(shmem_free)
OFFPATH_SHMEM_PROFILED(shmalloc)
OFFPATH_SHMEM_PROFILED(shmemalign)
OFFPATH_SHMEM_PROFILED(shrealloc)
OFFPATH_SHMEM_PROFILED(shfree)

}  // extern "C"
