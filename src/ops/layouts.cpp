// SPDX-License-Identifier: BSD-3-Clause
#include "ops/layouts.hpp"

namespace offpath::ops {

using base::Status;

Status check_layout(const graph::Layout& layout) {
  uint64_t sum = 0;
  for (const memory::Range& range : layout.ranges) {
    if (__builtin_add_overflow(sum, range.bytes, &sum)) {
      return Status::error(OFFPATH_ERR_ARGUMENT, "the ranges of a layout are longer than memory. Check their lengths");
    }
  }
  if (layout.size_bytes != 0 && sum == layout.size_bytes) return {};
  return Status::error(OFFPATH_ERR_ARGUMENT,
                       "a layout of %llu bytes has ranges of %llu bytes (they must agree and not be empty). Check both",
                       static_cast<unsigned long long>(layout.size_bytes), static_cast<unsigned long long>(sum));
}

}  // namespace offpath::ops
