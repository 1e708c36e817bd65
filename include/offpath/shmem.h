/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Nonblocking collectives for OpenSHMEM programs: broadcast, fcollect, alltoall and reductions that go on while the program
 * computes, and are completed by a request of their own.
 *
 *   shmemx_req_t request;
 *   shmemx_alltoall64_nb(dest, source, count, 0, 0, shmem_n_pes(), sync, &request);
 *   compute();
 *   shmemx_req_wait(&request);
 *
 * They take what the blocking functions of OpenSHMEM 1.4 take, and mean the same. The PEs of an active set begin the same ones in the
 * same order. Until the request is complete source, dest, work and sync are the operation's; sync is as it was afterwards.
 * shmem_quiet, barriers and shmem_finalize complete no request: a program waits for all it has begun.
 *
 * Nothing is linked. Where the program runs without Offpath, or the policy leaves a collective on the host, the native blocking
 * function is called at once, and the request is complete. Any thread may call, but for one set one at a time.
 */
#ifndef OFFPATH_SHMEM_H
#define OFFPATH_SHMEM_H

#include <offpath/offpath.h>

#include <dlfcn.h>
#include <shmem.h>
#include <shmemx.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What was begun; NULL: nothing, or it is complete. */
typedef offpath_op_t* shmemx_req_t;

/* What the preloaded library offers. Those that begin something return 1, or 0 where the native function is to be called. */
typedef struct offpath_shmem_calls {
  uint32_t struct_bytes;
  int (*broadcast)(void* dest, const void* source, size_t bytes, int root, int first, int log_stride, int size,
                   offpath_op_t** begun);
  int (*fcollect)(void* dest, const void* source, size_t bytes, int first, int log_stride, int size,
                  offpath_op_t** begun);
  int (*alltoall)(void* dest, const void* source, size_t bytes, int first, int log_stride, int size,
                  offpath_op_t** begun);
  int (*reduce)(void* dest, const void* source, int count, size_t element_bytes, offpath_operator_t op,
                offpath_element_t element, int first, int log_stride, int size, offpath_op_t** begun);
  int (*test)(offpath_op_t* op); /* 1: it was done, and is freed */
  void (*wait)(offpath_op_t* op);
} offpath_shmem_calls_t;

/* Looked for once. NULL: there is no Offpath. */
static inline const offpath_shmem_calls_t* offpath_shmem_find(void) {
  static const offpath_shmem_calls_t* found;
  static int looked;
  if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
    void* program = dlopen(NULL, RTLD_LAZY);
    const offpath_shmem_calls_t* calls =
        program == NULL ? NULL : (const offpath_shmem_calls_t*)dlsym(program, "shmemx_offpath_calls");
    if (calls != NULL && calls->struct_bytes < sizeof(*calls)) calls = NULL;
    __atomic_store_n(&found, calls, __ATOMIC_RELAXED);
    __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
  }
  return __atomic_load_n(&found, __ATOMIC_RELAXED);
}

/* 1: the request is complete, and NULL; 0: not yet. */
static inline int shmemx_req_test(shmemx_req_t* request) {
  if (*request != NULL && !offpath_shmem_find()->test(*request)) return 0;
  *request = NULL;
  return 1;
}

static inline void shmemx_req_wait(shmemx_req_t* request) {
  if (*request != NULL) offpath_shmem_find()->wait(*request);
  *request = NULL;
}

#define OFFPATH_SHMEM_BEGIN(call, ...) \
  *request = NULL;                     \
  if (offpath_shmem_find() != NULL && offpath_shmem_find()->call(__VA_ARGS__, first, log_stride, size, request)) return

#define OFFPATH_SHMEM_ELEMENTS(bits)                                                                                \
  static inline void shmemx_broadcast##bits##_nb(void* dest, const void* source, size_t count, int root, int first, \
                                                 int log_stride, int size, long* sync, shmemx_req_t* request) {     \
    OFFPATH_SHMEM_BEGIN(broadcast, dest, source, count*((bits) / 8), root);                                         \
    shmem_broadcast##bits(dest, source, count, root, first, log_stride, size, sync);                                \
  }                                                                                                                 \
  static inline void shmemx_fcollect##bits##_nb(void* dest, const void* source, size_t count, int first,            \
                                                int log_stride, int size, long* sync, shmemx_req_t* request) {      \
    OFFPATH_SHMEM_BEGIN(fcollect, dest, source, count*((bits) / 8));                                                \
    shmem_fcollect##bits(dest, source, count, first, log_stride, size, sync);                                       \
  }                                                                                                                 \
  static inline void shmemx_alltoall##bits##_nb(void* dest, const void* source, size_t count, int first,            \
                                                int log_stride, int size, long* sync, shmemx_req_t* request) {      \
    OFFPATH_SHMEM_BEGIN(alltoall, dest, source, count*((bits) / 8));                                                \
    shmem_alltoall##bits(dest, source, count, first, log_stride, size, sync);                                       \
  }

OFFPATH_SHMEM_ELEMENTS(32)
OFFPATH_SHMEM_ELEMENTS(64)

/* shmemx_double_sum_to_all_nb and its like: short, int, long, longlong by and, or, xor, min, max, sum, prod; float, double,
 * longdouble by the last four; complexf, complexd by the last two. */
#define OFFPATH_SHMEM_REDUCE(name, T, ELEMENT, op, OP)                                                                \
  static inline void shmemx_##name##_##op##_to_all_nb(T* dest, const T* source, int count, int first, int log_stride, \
                                                      int size, T* work, long* sync, shmemx_req_t* request) {         \
    OFFPATH_SHMEM_BEGIN(reduce, dest, source, count, sizeof(T), OFFPATH_OP_##OP, OFFPATH_ELEMENT_##ELEMENT);          \
    shmem_##name##_##op##_to_all(dest, source, count, first, log_stride, size, work, sync);                           \
  }
#define OFFPATH_SHMEM_COMPLEX(name, T, ELEMENT)    \
  OFFPATH_SHMEM_REDUCE(name, T, ELEMENT, sum, SUM) \
  OFFPATH_SHMEM_REDUCE(name, T, ELEMENT, prod, PROD)
#define OFFPATH_SHMEM_REAL(name, T, ELEMENT)       \
  OFFPATH_SHMEM_COMPLEX(name, T, ELEMENT)          \
  OFFPATH_SHMEM_REDUCE(name, T, ELEMENT, min, MIN) \
  OFFPATH_SHMEM_REDUCE(name, T, ELEMENT, max, MAX)
#define OFFPATH_SHMEM_INTEGER(name, T, ELEMENT)     \
  OFFPATH_SHMEM_REAL(name, T, ELEMENT)              \
  OFFPATH_SHMEM_REDUCE(name, T, ELEMENT, and, BAND) \
  OFFPATH_SHMEM_REDUCE(name, T, ELEMENT, or, BOR)   \
  OFFPATH_SHMEM_REDUCE(name, T, ELEMENT, xor, BXOR)

OFFPATH_SHMEM_INTEGER(short, short, I16)
OFFPATH_SHMEM_INTEGER(int, int, I32)
OFFPATH_SHMEM_INTEGER(long, long, I64)
OFFPATH_SHMEM_INTEGER(longlong, long long, I64)
OFFPATH_SHMEM_REAL(float, float, F32)
OFFPATH_SHMEM_REAL(double, double, F64)
OFFPATH_SHMEM_REAL(longdouble, long double, FLONG)
OFFPATH_SHMEM_COMPLEX(complexf, OSHMEM_COMPLEX_TYPE(float), C32)
OFFPATH_SHMEM_COMPLEX(complexd, OSHMEM_COMPLEX_TYPE(double), C64)

#undef OFFPATH_SHMEM_INTEGER
#undef OFFPATH_SHMEM_REAL
#undef OFFPATH_SHMEM_COMPLEX
#undef OFFPATH_SHMEM_REDUCE
#undef OFFPATH_SHMEM_ELEMENTS
#undef OFFPATH_SHMEM_BEGIN

#ifdef __cplusplus
}
#endif

#endif
