// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations on symmetric memory, through the service. Each function returns false, having done nothing,
// where the call is the native library's: nothing is offloaded, no such PE, or memory that is not symmetric or no
// window of ours. A wrong call then gets the native library's own answer.
//
// Threads: any. Blocking: as named; the service alone completes operations. What reads gives the native library a step now and then:
// a program that reads until another PE has written waits for that PE, which may need the library here first.
#pragma once

#include "shmem/job.hpp"

#include <cstddef>
#include <cstdint>

namespace offpath::shmem {

// `count` elements of `bytes` each; strides in elements.
struct Elements {
  uint64_t count;
  uint64_t bytes;
  ptrdiff_t symmetric_stride = 1;
  ptrdiff_t local_stride = 1;
};

// reusable: on return the local memory is the caller's again. posted: only after the next quiet().
enum class Until { reusable, posted };

bool put(void* symmetric, const void* local, const Elements& elements, int pe, Until until);
bool get(void* local, const void* symmetric, const Elements& elements, int pe, Until until);

// An atomic operation on one word; values are its low `bytes`. What the operator is: offpath.h; NO_OP fetches, REPLACE
// swaps. The word is an integer for this purpose: fetch, set and swap of floating point move its bits.
struct Atomic {
  offpath_operator_t op;
  uint32_t bytes;  // 4 or 8
  uint64_t value;
};

bool atomic_update(void* symmetric, const Atomic& atomic, int pe);
bool atomic_fetch(const void* symmetric, const Atomic& atomic, int pe, uint64_t* old);
bool atomic_compare_swap(void* symmetric, const Atomic& atomic, uint64_t compare, int pe, uint64_t* old);

}  // namespace offpath::shmem
