// SPDX-License-Identifier: BSD-3-Clause
// put, get, p, g, iput, iget and the nonblocking forms, of all types and sizes, with and without context.
#include "shmem/natives.hpp"
#include "shmem/transfer.hpp"

namespace offpath::shmem {
namespace {

void put_elements(shmem_ctx_t ctx, void* target, const void* source, size_t count, size_t bytes, int pe) {
  if (put(target, source, {count, bytes}, pe, Until::reusable)) return;
  native().shmem_ctx_putmem(native_context(ctx), target, source, count * bytes, pe);
}

void get_elements(shmem_ctx_t ctx, void* target, const void* source, size_t count, size_t bytes, int pe) {
  if (get(target, source, {count, bytes}, pe, Until::reusable)) return;
  native().shmem_ctx_getmem(native_context(ctx), target, source, count * bytes, pe);
}

void post_put(shmem_ctx_t ctx, void* target, const void* source, size_t count, size_t bytes, int pe) {
  if (put(target, source, {count, bytes}, pe, Until::posted)) return;
  native().shmem_ctx_putmem_nbi(native_context(ctx), target, source, count * bytes, pe);
}

void post_get(shmem_ctx_t ctx, void* target, const void* source, size_t count, size_t bytes, int pe) {
  if (get(target, source, {count, bytes}, pe, Until::posted)) return;
  native().shmem_ctx_getmem_nbi(native_context(ctx), target, source, count * bytes, pe);
}

template <class T>
T get_one(shmem_ctx_t ctx, const T* source, int pe) {
  T value{};
  get_elements(ctx, &value, source, 1, sizeof(T), pe);
  return value;
}

void put_strided(shmem_ctx_t ctx, void* target, const void* source, ptrdiff_t target_stride, ptrdiff_t source_stride,
                 size_t count, size_t bytes, int pe) {
  if (put(target, source, {count, bytes, target_stride, source_stride}, pe, Until::reusable)) return;
  switch (bytes) {
#define OFFPATH_SHMEM_SIZE(size, width) \
  case width:                           \
    return native().shmem_ctx_iput##size(native_context(ctx), target, source, target_stride, source_stride, count, pe);
    OFFPATH_SHMEM_SIZES
#undef OFFPATH_SHMEM_SIZE
  }
}

void get_strided(shmem_ctx_t ctx, void* target, const void* source, ptrdiff_t target_stride, ptrdiff_t source_stride,
                 size_t count, size_t bytes, int pe) {
  if (get(target, source, {count, bytes, source_stride, target_stride}, pe, Until::reusable)) return;
  switch (bytes) {
#define OFFPATH_SHMEM_SIZE(size, width) \
  case width:                           \
    return native().shmem_ctx_iget##size(native_context(ctx), target, source, target_stride, source_stride, count, pe);
    OFFPATH_SHMEM_SIZES
#undef OFFPATH_SHMEM_SIZE
  }
}

}  // namespace
}  // namespace offpath::shmem

using namespace offpath::shmem;

// shmem_NAME(parameters) and shmem_ctx_NAME(ctx, parameters), which both are `call`.
#define BOTH(Return, name, call, ...)                                    \
  Return shmem_ctx_##name(shmem_ctx_t ctx, __VA_ARGS__) { return call; } \
  Return shmem_##name(__VA_ARGS__) {                                     \
    const shmem_ctx_t ctx = kDefaultContext;                             \
    return call;                                                         \
  }                                                                      \
  OFFPATH_SHMEM_PROFILED(shmem_ctx_##name)                               \
  OFFPATH_SHMEM_PROFILED(shmem_##name)

#define MOVES(put_name, get_name, T, bytes)                                                                           \
  BOTH(void, put_name, put_elements(ctx, target, source, count, bytes, pe), T* target, const T* source, size_t count, \
       int pe)                                                                                                        \
  BOTH(void, get_name, get_elements(ctx, target, source, count, bytes, pe), T* target, const T* source, size_t count, \
       int pe)                                                                                                        \
  BOTH(void, put_name##_nbi, post_put(ctx, target, source, count, bytes, pe), T* target, const T* source,             \
       size_t count, int pe)                                                                                          \
  BOTH(void, get_name##_nbi, post_get(ctx, target, source, count, bytes, pe), T* target, const T* source,             \
       size_t count, int pe)

#define STRIDED(iput_name, iget_name, T, bytes)                                                                      \
  BOTH(void, iput_name, put_strided(ctx, target, source, target_stride, source_stride, count, bytes, pe), T* target, \
       const T* source, ptrdiff_t target_stride, ptrdiff_t source_stride, size_t count, int pe)                      \
  BOTH(void, iget_name, get_strided(ctx, target, source, target_stride, source_stride, count, bytes, pe), T* target, \
       const T* source, ptrdiff_t target_stride, ptrdiff_t source_stride, size_t count, int pe)

extern "C" {

#define OFFPATH_SHMEM_TYPE(name, T)                                                                     \
  MOVES(name##_put, name##_get, T, sizeof(T))                                                           \
  STRIDED(name##_iput, name##_iget, T, sizeof(T))                                                       \
  BOTH(void, name##_p, put_elements(ctx, target, &value, 1, sizeof(T), pe), T* target, T value, int pe) \
  BOTH(T, name##_g, get_one(ctx, source, pe), const T* source, int pe)
OFFPATH_SHMEM_RMA_TYPES
#undef OFFPATH_SHMEM_TYPE

#define OFFPATH_SHMEM_SIZE(size, bytes)            \
  MOVES(put##size, get##size, void, size_t{bytes}) \
  STRIDED(iput##size, iget##size, void, size_t{bytes})
OFFPATH_SHMEM_SIZES
#undef OFFPATH_SHMEM_SIZE

MOVES(putmem, getmem, void, size_t{1})

// Open MPI's names of before 1.4.
#define OFFPATH_SHMEM_FIXED(name, T)                                                            \
  void shmemx_##name##_p(T* target, T value, int pe) {                                          \
    put_elements(kDefaultContext, target, &value, 1, sizeof(T), pe);                            \
  }                                                                                             \
  T shmemx_##name##_g(const T* source, int pe) { return get_one(kDefaultContext, source, pe); } \
  OFFPATH_SHMEM_PROFILED(shmemx_##name##_p)                                                     \
  OFFPATH_SHMEM_PROFILED(shmemx_##name##_g)
OFFPATH_SHMEM_FIXED(int16, int16_t)
OFFPATH_SHMEM_FIXED(int32, int32_t)
OFFPATH_SHMEM_FIXED(int64, int64_t)

}  // extern "C"
