// SPDX-License-Identifier: BSD-3-Clause
// What a caller can get wrong in a block's length and in an offpath_layout_t. Pure.
#pragma once

#include "wire/message.hpp"

#include <offpath/offpath.h>

#include <span>

namespace offpath::client {

inline bool too_long(uint64_t bytes) { return bytes >= wire::kMaxBlockBytes; }

// Linear in the ranges.
inline bool good_layout(const offpath_layout_t& layout) {
  if (layout.ranges == nullptr || layout.size_bytes == 0 || too_long(layout.size_bytes)) return false;
  uint64_t left = layout.size_bytes;
  for (const offpath_range_t& range : std::span(layout.ranges, layout.ranges_count)) {
    if (range.bytes > left) return false;
    left -= range.bytes;
  }
  return left == 0;
}

}  // namespace offpath::client
