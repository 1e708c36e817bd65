// SPDX-License-Identifier: BSD-3-Clause
#include "ops/layouts.hpp"

namespace offpath::ops {

using base::Status;

Status check_layout(const graph::Layout& layout) {
  if (memory::is_layout(layout.size_bytes, layout.ranges)) return {};
  return Status::error(OFFPATH_ERR_ARGUMENT,
                       "the ranges of a layout are not its %llu bytes, or none (they must agree). Check both",
                       static_cast<unsigned long long>(layout.size_bytes));
}

}  // namespace offpath::ops
