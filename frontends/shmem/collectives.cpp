// SPDX-License-Identifier: BSD-3-Clause
// broadcast, collect, fcollect, alltoall, alltoalls and the reductions, which the program waits for in the call.
// Barriers and sync stay native (ordering.cpp): they move nothing.
#include "shmem/collective.hpp"
#include "shmem/natives.hpp"

using namespace offpath::shmem;

#define ELEMENTS(bits)                                                                                              \
  void shmem_broadcast##bits(void* dest, const void* source, size_t count, int root, int first, int log_stride,     \
                             int size, long* sync) {                                                                \
    if (broadcast(dest, source, bytes_of(count, bits), root, {first, log_stride, size}, nullptr)) return;           \
    native().shmem_broadcast##bits(dest, source, count, root, first, log_stride, size, sync);                       \
  }                                                                                                                 \
  void shmem_collect##bits(void* dest, const void* source, size_t count, int first, int log_stride, int size,       \
                           long* sync) {                                                                            \
    if (collect(dest, source, bytes_of(count, bits), {first, log_stride, size})) return;                            \
    native().shmem_collect##bits(dest, source, count, first, log_stride, size, sync);                               \
  }                                                                                                                 \
  void shmem_fcollect##bits(void* dest, const void* source, size_t count, int first, int log_stride, int size,      \
                            long* sync) {                                                                           \
    if (fcollect(dest, source, bytes_of(count, bits), {first, log_stride, size}, nullptr)) return;                  \
    native().shmem_fcollect##bits(dest, source, count, first, log_stride, size, sync);                              \
  }                                                                                                                 \
  void shmem_alltoall##bits(void* dest, const void* source, size_t count, int first, int log_stride, int size,      \
                            long* sync) {                                                                           \
    if (alltoall(dest, source, {count, (bits) / 8}, {first, log_stride, size}, nullptr)) return;                    \
    native().shmem_alltoall##bits(dest, source, count, first, log_stride, size, sync);                              \
  }                                                                                                                 \
  void shmem_alltoalls##bits(void* dest, const void* source, ptrdiff_t to, ptrdiff_t from, size_t count, int first, \
                             int log_stride, int size, long* sync) {                                                \
    if (alltoall(dest, source, {count, (bits) / 8, to, from}, {first, log_stride, size}, nullptr)) return;          \
    native().shmem_alltoalls##bits(dest, source, to, from, count, first, log_stride, size, sync);                   \
  }                                                                                                                 \
  OFFPATH_SHMEM_PROFILED(shmem_broadcast##bits)                                                                     \
  OFFPATH_SHMEM_PROFILED(shmem_collect##bits)                                                                       \
  OFFPATH_SHMEM_PROFILED(shmem_fcollect##bits)                                                                      \
  OFFPATH_SHMEM_PROFILED(shmem_alltoall##bits)                                                                      \
  OFFPATH_SHMEM_PROFILED(shmem_alltoalls##bits)

#define REDUCE(name, T, ELEMENT, op, OP)                                                                       \
  void name##_##op##_to_all(T* dest, const T* source, int count, int first, int log_stride, int size, T* work, \
                            long* sync) {                                                                      \
    if (reduce(dest, source, count, sizeof(T), {OFFPATH_OP_##OP, OFFPATH_ELEMENT_##ELEMENT},                   \
               {first, log_stride, size}, nullptr))                                                            \
      return;                                                                                                  \
    native().name##_##op##_to_all(dest, source, count, first, log_stride, size, work, sync);                   \
  }                                                                                                            \
  OFFPATH_SHMEM_PROFILED(name##_##op##_to_all)

namespace {

// More than an address space holds is nobody's to serve.
uint64_t bytes_of(size_t count, unsigned bits) {
  uint64_t bytes = 0;
  return __builtin_mul_overflow(count, bits / 8, &bytes) ? 0 : bytes;
}

}  // namespace

extern "C" {

ELEMENTS(32)
ELEMENTS(64)

#define OFFPATH_SHMEM_TYPE(name, T, ELEMENT) \
  REDUCE(name, T, ELEMENT, sum, SUM)         \
  REDUCE(name, T, ELEMENT, prod, PROD)
OFFPATH_SHMEM_COMPLEX_TYPES
OFFPATH_SHMEM_REAL_TYPES
OFFPATH_SHMEM_INTEGER_TYPES
#undef OFFPATH_SHMEM_TYPE
#define OFFPATH_SHMEM_TYPE(name, T, ELEMENT) \
  REDUCE(name, T, ELEMENT, min, MIN)         \
  REDUCE(name, T, ELEMENT, max, MAX)
OFFPATH_SHMEM_REAL_TYPES
OFFPATH_SHMEM_INTEGER_TYPES
#undef OFFPATH_SHMEM_TYPE
#define OFFPATH_SHMEM_TYPE(name, T, ELEMENT) \
  REDUCE(name, T, ELEMENT, and, BAND)        \
  REDUCE(name, T, ELEMENT, or, BOR)          \
  REDUCE(name, T, ELEMENT, xor, BXOR)
OFFPATH_SHMEM_INTEGER_TYPES
#undef OFFPATH_SHMEM_TYPE

}  // extern "C"
