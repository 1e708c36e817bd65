// SPDX-License-Identifier: BSD-3-Clause
// The types of OpenSHMEM 1.4 and which families of functions each has. A list is expanded with OFFPATH_SHMEM_TYPE(name,
// type) or OFFPATH_SHMEM_SIZE(name, bytes per element) defined by the user.
#pragma once

#include <cstddef>
#include <cstdint>

// put, get, iput, iget by element size
#define OFFPATH_SHMEM_SIZES \
  OFFPATH_SHMEM_SIZE(8, 1)  \
  OFFPATH_SHMEM_SIZE(16, 2) \
  OFFPATH_SHMEM_SIZE(32, 4) \
  OFFPATH_SHMEM_SIZE(64, 8) \
  OFFPATH_SHMEM_SIZE(128, 16)

// add, increment, compare and swap
#define OFFPATH_SHMEM_ADD_TYPES            \
  OFFPATH_SHMEM_TYPE(int, int)             \
  OFFPATH_SHMEM_TYPE(long, long)           \
  OFFPATH_SHMEM_TYPE(longlong, long long)  \
  OFFPATH_SHMEM_TYPE(uint, unsigned int)   \
  OFFPATH_SHMEM_TYPE(ulong, unsigned long) \
  OFFPATH_SHMEM_TYPE(ulonglong, unsigned long long)

// fetch, set, swap
#define OFFPATH_SHMEM_SWAP_TYPES   \
  OFFPATH_SHMEM_ADD_TYPES          \
  OFFPATH_SHMEM_TYPE(float, float) \
  OFFPATH_SHMEM_TYPE(double, double)

#define OFFPATH_SHMEM_FIXED_TYPES      \
  OFFPATH_SHMEM_TYPE(int32, int32_t)   \
  OFFPATH_SHMEM_TYPE(int64, int64_t)   \
  OFFPATH_SHMEM_TYPE(uint32, uint32_t) \
  OFFPATH_SHMEM_TYPE(uint64, uint64_t)

// and, or, xor
#define OFFPATH_SHMEM_BIT_TYPES \
  OFFPATH_SHMEM_ADD_TYPES       \
  OFFPATH_SHMEM_FIXED_TYPES

// Names of before 1.4 without "atomic": add, fadd, inc, finc, cswap; with the second list also fetch, set, swap
#define OFFPATH_SHMEM_OLD_ADD_TYPES \
  OFFPATH_SHMEM_TYPE(int, int)      \
  OFFPATH_SHMEM_TYPE(long, long)    \
  OFFPATH_SHMEM_TYPE(longlong, long long)
#define OFFPATH_SHMEM_OLD_SWAP_TYPES \
  OFFPATH_SHMEM_OLD_ADD_TYPES        \
  OFFPATH_SHMEM_TYPE(float, float)   \
  OFFPATH_SHMEM_TYPE(double, double)

// wait_until, test
#define OFFPATH_SHMEM_WAIT_TYPES             \
  OFFPATH_SHMEM_ADD_TYPES                    \
  OFFPATH_SHMEM_FIXED_TYPES                  \
  OFFPATH_SHMEM_TYPE(short, short)           \
  OFFPATH_SHMEM_TYPE(ushort, unsigned short) \
  OFFPATH_SHMEM_TYPE(size, size_t)           \
  OFFPATH_SHMEM_TYPE(ptrdiff, ptrdiff_t)

// put, get, p, g, iput, iget and their nonblocking forms
#define OFFPATH_SHMEM_RMA_TYPES               \
  OFFPATH_SHMEM_WAIT_TYPES                    \
  OFFPATH_SHMEM_TYPE(char, char)              \
  OFFPATH_SHMEM_TYPE(schar, signed char)      \
  OFFPATH_SHMEM_TYPE(uchar, unsigned char)    \
  OFFPATH_SHMEM_TYPE(float, float)            \
  OFFPATH_SHMEM_TYPE(double, double)          \
  OFFPATH_SHMEM_TYPE(longdouble, long double) \
  OFFPATH_SHMEM_TYPE(int8, int8_t)            \
  OFFPATH_SHMEM_TYPE(int16, int16_t)          \
  OFFPATH_SHMEM_TYPE(uint8, uint8_t)          \
  OFFPATH_SHMEM_TYPE(uint16, uint16_t)

// Reductions by the beginning of their names: OFFPATH_SHMEM_TYPE(name, type, element). All combine by sum and prod ...
#define OFFPATH_SHMEM_COMPLEX_TYPES                                   \
  OFFPATH_SHMEM_TYPE(shmem_complexf, OSHMEM_COMPLEX_TYPE(float), C32) \
  OFFPATH_SHMEM_TYPE(shmem_complexd, OSHMEM_COMPLEX_TYPE(double), C64)
// ... numbers that are ordered by min and max ...
#define OFFPATH_SHMEM_REAL_TYPES                \
  OFFPATH_SHMEM_TYPE(shmem_float, float, F32)   \
  OFFPATH_SHMEM_TYPE(shmem_double, double, F64) \
  OFFPATH_SHMEM_TYPE(shmem_longdouble, long double, FLONG)
// ... integers by and, or, xor.
#define OFFPATH_SHMEM_INTEGER_TYPES                  \
  OFFPATH_SHMEM_TYPE(shmem_short, short, I16)        \
  OFFPATH_SHMEM_TYPE(shmem_int, int, I32)            \
  OFFPATH_SHMEM_TYPE(shmem_long, long, I64)          \
  OFFPATH_SHMEM_TYPE(shmem_longlong, long long, I64) \
  OFFPATH_SHMEM_TYPE(shmemx_int16, int16_t, I16)     \
  OFFPATH_SHMEM_TYPE(shmemx_int32, int32_t, I32)     \
  OFFPATH_SHMEM_TYPE(shmemx_int64, int64_t, I64)
