// SPDX-License-Identifier: BSD-3-Clause
// Layout: where the bytes of elements lie that are not contiguous. And how blocks and layouts stand in records.
#pragma once

#include "base/limits.hpp"
#include "base/records.hpp"
#include "base/result.hpp"

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

// A block of a client's memory, and whom it is for or from. As it stands in a session segment.
struct Block {
  uint32_t peer = 0;
  uint32_t tag = 0;
  uint64_t address = 0;  // of the client
  uint64_t bytes = 0;
  uint32_t layout = 0;  // 0: contiguous, k: layouts[k - 1]
  uint32_t reserved = 0;
  bool operator==(const Block&) const = default;
};
static_assert(sizeof(Block) == 32);

// Whether the ranges (anything with `bytes`) are elements of so many bytes, and not of none or too many.
template <typename Ranges>
bool is_layout(uint64_t size_bytes, const Ranges& ranges) {
  uint64_t left = size_bytes;
  for (const auto& range : ranges) {
    if (range.bytes > left) return false;
    left -= range.bytes;
  }
  return size_bytes > 0 && size_bytes < base::kBlockLimitBytes && left == 0;
}

// OFFPATH_ERR_ARGUMENT, and why, for one that is_layout() refuses.
base::Status check_layout(const Layout& layout);

struct LayoutRecord {
  uint64_t size_bytes;
  int64_t extent_bytes;
  uint32_t ranges_count;
  uint32_t reserved;
};
static_assert(sizeof(LayoutRecord) == 24 && sizeof(Range) == 16);

uint64_t count_ranges(const std::vector<Layout>& layouts);
// All layouts, then all their ranges.
void write_layouts(const std::vector<Layout>& layouts, base::RecordWriter& writer);
// False: there are not so many, or they have not as many ranges together.
bool read_layouts(base::RecordReader& reader, uint32_t layouts_count, uint32_t ranges_count,
                  std::vector<Layout>& layouts);

}  // namespace offpath::memory
