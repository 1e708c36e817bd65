// SPDX-License-Identifier: BSD-3-Clause
// Atomic memory operations of all types, with and without context, under their names of 1.4 and of before.
// Natively each goes through that of int or long, whichever is as wide: the bits are the same.
#include "shmem/natives.hpp"
#include "shmem/transfer.hpp"

#include <bit>
#include <cstring>
#include <type_traits>

namespace offpath::shmem {
namespace {

template <class T>
using Word = std::conditional_t<sizeof(T) == sizeof(int), int, long>;
template <class W>
using Fetch = W (*)(shmem_ctx_t, W*, W, int);
template <class W>
using Update = void (*)(shmem_ctx_t, W*, W, int);

#define NATIVE_WORD(W)                                                                      \
  Fetch<W> native_fetch(offpath_operator_t op, W) {                                         \
    switch (op) {                                                                           \
      case OFFPATH_OP_BAND:                                                                 \
        return native().shmem_ctx_##W##_atomic_fetch_and;                                   \
      case OFFPATH_OP_BOR:                                                                  \
        return native().shmem_ctx_##W##_atomic_fetch_or;                                    \
      case OFFPATH_OP_BXOR:                                                                 \
        return native().shmem_ctx_##W##_atomic_fetch_xor;                                   \
      case OFFPATH_OP_REPLACE:                                                              \
        return native().shmem_ctx_##W##_atomic_swap;                                        \
      default:                                                                              \
        return native().shmem_ctx_##W##_atomic_fetch_add;                                   \
    }                                                                                       \
  }                                                                                         \
  Update<W> native_update(offpath_operator_t op, W) {                                       \
    switch (op) {                                                                           \
      case OFFPATH_OP_BAND:                                                                 \
        return native().shmem_ctx_##W##_atomic_and;                                         \
      case OFFPATH_OP_BOR:                                                                  \
        return native().shmem_ctx_##W##_atomic_or;                                          \
      case OFFPATH_OP_BXOR:                                                                 \
        return native().shmem_ctx_##W##_atomic_xor;                                         \
      case OFFPATH_OP_REPLACE:                                                              \
        return native().shmem_ctx_##W##_atomic_set;                                         \
      default:                                                                              \
        return native().shmem_ctx_##W##_atomic_add;                                         \
    }                                                                                       \
  }                                                                                         \
  W native_read(shmem_ctx_t ctx, const W* target, int pe) {                                 \
    return native().shmem_ctx_##W##_atomic_fetch(ctx, target, pe);                          \
  }                                                                                         \
  W native_compare_swap(shmem_ctx_t ctx, W* target, W condition, W value, int pe) {         \
    return native().shmem_ctx_##W##_atomic_compare_swap(ctx, target, condition, value, pe); \
  }
NATIVE_WORD(int)
NATIVE_WORD(long)
#undef NATIVE_WORD

template <class T>
uint64_t to_bits(T value) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <class T>
T from_bits(uint64_t bits) {
  T value{};
  memcpy(&value, &bits, sizeof(T));
  return value;
}

template <class T>
Word<T>* words(T* target) {
  return reinterpret_cast<Word<T>*>(target);
}

template <class T>
void update(shmem_ctx_t ctx, offpath_operator_t op, T* target, T value, int pe) {
  if (atomic_update(target, {op, sizeof(T), to_bits(value)}, pe)) return;
  native_update(op, Word<T>{})(native_context(ctx), words(target), std::bit_cast<Word<T>>(value), pe);
}

template <class T>
T fetch(shmem_ctx_t ctx, offpath_operator_t op, T* target, T value, int pe) {
  uint64_t old = 0;
  if (atomic_fetch(target, {op, sizeof(T), to_bits(value)}, pe, &old)) return from_bits<T>(old);
  return std::bit_cast<T>(
      native_fetch(op, Word<T>{})(native_context(ctx), words(target), std::bit_cast<Word<T>>(value), pe));
}

template <class T>
T read(shmem_ctx_t ctx, const T* target, int pe) {
  uint64_t old = 0;
  if (atomic_fetch(target, {OFFPATH_OP_NO_OP, sizeof(T), 0}, pe, &old)) return from_bits<T>(old);
  return std::bit_cast<T>(native_read(native_context(ctx), words(const_cast<T*>(target)), pe));
}

template <class T>
T compare_swap(shmem_ctx_t ctx, T* target, T condition, T value, int pe) {
  uint64_t old = 0;
  const Atomic atomic{OFFPATH_OP_REPLACE, sizeof(T), to_bits(value)};
  if (atomic_compare_swap(target, atomic, to_bits(condition), pe, &old)) return from_bits<T>(old);
  return std::bit_cast<T>(native_compare_swap(native_context(ctx), words(target), std::bit_cast<Word<T>>(condition),
                                              std::bit_cast<Word<T>>(value), pe));
}

}  // namespace
}  // namespace offpath::shmem

using namespace offpath::shmem;

// NAME(parameters) and, where it has one, its form with a context.
#define PLAIN(Return, name, call, ...)       \
  Return name(__VA_ARGS__) {                 \
    const shmem_ctx_t ctx = kDefaultContext; \
    return call;                             \
  }                                          \
  OFFPATH_SHMEM_PROFILED(name)
#define BOTH(Return, name, call, ...)                                    \
  Return shmem_ctx_##name(shmem_ctx_t ctx, __VA_ARGS__) { return call; } \
  OFFPATH_SHMEM_PROFILED(shmem_ctx_##name)                               \
  PLAIN(Return, shmem_##name, call, __VA_ARGS__)

// The families, each with the form (PLAIN or BOTH) and the names of its functions.
#define ADD(FORM, T, add, fetch_add, inc, fetch_inc, cswap)                                        \
  FORM(void, add, update<T>(ctx, OFFPATH_OP_SUM, target, value, pe), T* target, T value, int pe)   \
  FORM(T, fetch_add, fetch<T>(ctx, OFFPATH_OP_SUM, target, value, pe), T* target, T value, int pe) \
  FORM(void, inc, update<T>(ctx, OFFPATH_OP_SUM, target, 1, pe), T* target, int pe)                \
  FORM(T, fetch_inc, fetch<T>(ctx, OFFPATH_OP_SUM, target, 1, pe), T* target, int pe)              \
  FORM(T, cswap, compare_swap<T>(ctx, target, condition, value, pe), T* target, T condition, T value, int pe)
#define SWAP(FORM, T, fetch_name, set, swap)                                                         \
  FORM(T, fetch_name, read<T>(ctx, target, pe), const T* target, int pe)                             \
  FORM(void, set, update<T>(ctx, OFFPATH_OP_REPLACE, target, value, pe), T* target, T value, int pe) \
  FORM(T, swap, fetch<T>(ctx, OFFPATH_OP_REPLACE, target, value, pe), T* target, T value, int pe)
#define BIT(FORM, T, name, fetch_name, operator)                                            \
  FORM(void, name, update<T>(ctx, operator, target, value, pe), T* target, T value, int pe) \
  FORM(T, fetch_name, fetch<T>(ctx, operator, target, value, pe), T* target, T value, int pe)
#define BITS(FORM, T, prefix)                                     \
  BIT(FORM, T, prefix##_and, prefix##_fetch_and, OFFPATH_OP_BAND) \
  BIT(FORM, T, prefix##_or, prefix##_fetch_or, OFFPATH_OP_BOR)    \
  BIT(FORM, T, prefix##_xor, prefix##_fetch_xor, OFFPATH_OP_BXOR)

extern "C" {

#define OFFPATH_SHMEM_TYPE(name, T)                                                                    \
  ADD(BOTH, T, name##_atomic_add, name##_atomic_fetch_add, name##_atomic_inc, name##_atomic_fetch_inc, \
      name##_atomic_compare_swap)
OFFPATH_SHMEM_ADD_TYPES
#undef OFFPATH_SHMEM_TYPE

#define OFFPATH_SHMEM_TYPE(name, T) SWAP(BOTH, T, name##_atomic_fetch, name##_atomic_set, name##_atomic_swap)
OFFPATH_SHMEM_SWAP_TYPES
#undef OFFPATH_SHMEM_TYPE

#define OFFPATH_SHMEM_TYPE(name, T) BITS(BOTH, T, name##_atomic)
OFFPATH_SHMEM_BIT_TYPES
#undef OFFPATH_SHMEM_TYPE

#define OLD_ADD(T, prefix) ADD(PLAIN, T, prefix##_add, prefix##_fadd, prefix##_inc, prefix##_finc, prefix##_cswap)
#define OLD_SWAP(T, prefix) SWAP(PLAIN, T, prefix##_fetch, prefix##_set, prefix##_swap)

#define OFFPATH_SHMEM_TYPE(name, T) OLD_ADD(T, shmem_##name)
OFFPATH_SHMEM_OLD_ADD_TYPES
#undef OFFPATH_SHMEM_TYPE

#define OFFPATH_SHMEM_TYPE(name, T) OLD_SWAP(T, shmem_##name)
OFFPATH_SHMEM_OLD_SWAP_TYPES
#undef OFFPATH_SHMEM_TYPE

// Open MPI's own, of before 1.4.
OLD_ADD(int32_t, shmemx_int32)
OLD_ADD(int64_t, shmemx_int64)
OLD_SWAP(int32_t, shmemx_int32)
OLD_SWAP(int64_t, shmemx_int64)
#define OFFPATH_SHMEM_TYPE(name, T) BITS(PLAIN, T, shmemx_##name##_atomic)
OFFPATH_SHMEM_FIXED_TYPES
#undef OFFPATH_SHMEM_TYPE

}  // extern "C"
