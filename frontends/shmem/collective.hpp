// SPDX-License-Identifier: BSD-3-Clause
// Collectives over active sets, through the services. Each function returns false, having done nothing, where the call is
// the native library's, by what all of the set know alike: nothing is offloaded, the policy, a set of one PE, no bytes, or
// arguments that are wrong, which the native library then says. The arrays for synchronization and work are not needed.
//
// Threads: any; on one set one at a time. Blocking: without `begun` until this PE's part is done; the native library is
// kept going meanwhile, as the PEs that this one waits for may need it. With it, the op that is to be waited for.
#pragma once

#include "shmem/active_sets.hpp"

#include <offpath/offpath.h>

#include <cstddef>
#include <cstdint>

namespace offpath::shmem {

// `root`: its place in the set, where nothing is received.
bool broadcast(void* dest, const void* source, uint64_t bytes, int root, const ActiveSet& set, offpath_op_t** begun);
// Everybody's `bytes`, one after the other.
bool fcollect(void* dest, const void* source, uint64_t bytes, const ActiveSet& set, offpath_op_t** begun);
// The same where each has as many as it likes. The services tell the lengths first.
bool collect(void* dest, const void* source, uint64_t bytes, const ActiveSet& set);

// What one PE sends to each other one: elements, and the distances between two of them on both sides, in elements.
struct Portions {
  uint64_t count;
  uint64_t bytes;  // of an element
  ptrdiff_t dest_stride = 1;
  ptrdiff_t source_stride = 1;
};
bool alltoall(void* dest, const void* source, const Portions& portions, const ActiveSet& set, offpath_op_t** begun);

struct Reduction {
  offpath_operator_t op;
  offpath_element_t element;
};
// Over `count` elements of `bytes` each.
bool reduce(void* dest, const void* source, int64_t count, uint64_t bytes, const Reduction& reduction,
            const ActiveSet& set, offpath_op_t** begun);

// One look at what was begun, and one step of the native library. True: it is done and freed.
bool test(offpath_op_t* op);
void wait(offpath_op_t* op);

}  // namespace offpath::shmem
