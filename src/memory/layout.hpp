// SPDX-License-Identifier: BSD-3-Clause
// Layout: where the bytes of elements lie that are not contiguous.
#pragma once

#include <cstdint>
#include <vector>

namespace offpath::memory {

// A stretch of bytes, relative to the first byte of an element.
struct Range {
  int64_t offset = 0;
  uint64_t bytes = 0;
};

// Elements one `extent_bytes` after the other; the bytes of one element are its ranges in order.
struct Layout {
  uint64_t size_bytes = 0;  // sum of the ranges, > 0
  int64_t extent_bytes = 0;
  std::vector<Range> ranges;
};

// Whether the ranges (anything with `bytes`) are elements of so many bytes, and not of none.
template <typename Ranges>
bool is_layout(uint64_t size_bytes, const Ranges& ranges) {
  uint64_t left = size_bytes;
  for (const auto& range : ranges) {
    if (range.bytes > left) return false;
    left -= range.bytes;
  }
  return size_bytes > 0 && left == 0;
}

}  // namespace offpath::memory
