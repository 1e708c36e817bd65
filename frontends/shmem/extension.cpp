// SPDX-License-Identifier: BSD-3-Clause
// What offpath/shmem.h finds: nonblocking collectives.
#include "shmem/collective.hpp"
#include "shmem/natives.hpp"

#include <offpath/shmem.h>

namespace offpath::shmem {
namespace {

int begin_broadcast(void* dest, const void* source, size_t bytes, int root, int first, int log_stride, int size,
                    offpath_op_t** begun) {
  return broadcast(dest, source, bytes, root, {first, log_stride, size}, begun) ? 1 : 0;
}

int begin_fcollect(void* dest, const void* source, size_t bytes, int first, int log_stride, int size,
                   offpath_op_t** begun) {
  return fcollect(dest, source, bytes, {first, log_stride, size}, begun) ? 1 : 0;
}

int begin_alltoall(void* dest, const void* source, size_t bytes, int first, int log_stride, int size,
                   offpath_op_t** begun) {
  return alltoall(dest, source, {bytes, 1}, {first, log_stride, size}, begun) ? 1 : 0;
}

int begin_reduce(void* dest, const void* source, int count, size_t element_bytes, offpath_operator_t op,
                 offpath_element_t element, int first, int log_stride, int size, offpath_op_t** begun) {
  return reduce(dest, source, count, element_bytes, {op, element}, {first, log_stride, size}, begun) ? 1 : 0;
}

int test_begun(offpath_op_t* op) { return test(op) ? 1 : 0; }

}  // namespace
}  // namespace offpath::shmem

using namespace offpath::shmem;

extern "C" [[gnu::visibility("default")]] const offpath_shmem_calls_t shmemx_offpath_calls;
const offpath_shmem_calls_t shmemx_offpath_calls{sizeof(offpath_shmem_calls_t),
                                                 &begin_broadcast,
                                                 &begin_fcollect,
                                                 &begin_alltoall,
                                                 &begin_reduce,
                                                 &test_begun,
                                                 &wait};
