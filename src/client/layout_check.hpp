// SPDX-License-Identifier: BSD-3-Clause
// What a caller can get wrong in a block's length and in an offpath_layout_t. Pure.
#pragma once

#include "base/limits.hpp"
#include "memory/layout.hpp"

#include <offpath/offpath.h>

#include <span>

namespace offpath::client {

inline bool too_long(uint64_t bytes) { return bytes >= base::kBlockLimitBytes; }

// Linear in the ranges.
inline bool good_layout(const offpath_layout_t& layout) {
  if (layout.ranges == nullptr || too_long(layout.size_bytes)) return false;
  return memory::is_layout(layout.size_bytes, std::span(layout.ranges, layout.ranges_count));
}

}  // namespace offpath::client
