// SPDX-License-Identifier: BSD-3-Clause
// Writing records of the session segment. Pure.
#pragma once

#include "session/layout.hpp"

#include <offpath/offpath.h>

#include <cstring>
#include <span>

namespace offpath::client {

using Layouts = std::span<const offpath_layout_t>;

inline session::BlockRecord block_record(const offpath_block_t& block) {
  return {block.peer, block.tag, reinterpret_cast<uint64_t>(block.address), block.bytes, block.layout, 0};
}

inline uint64_t count_ranges(Layouts layouts) {
  uint64_t count = 0;
  for (const offpath_layout_t& layout : layouts) count += layout.ranges_count;
  return count;
}

inline uint64_t layouts_bytes(Layouts layouts) {
  return layouts.size() * sizeof(session::LayoutRecord) + count_ranges(layouts) * sizeof(session::RangeRecord);
}

// The room was made sure of.
class RecordWriter {
 public:
  explicit RecordWriter(uint8_t* to) : to_(to) {}
  template <typename T>
  void write(const T& value) {
    write_bytes(&value, sizeof(value));
  }
  void write_bytes(const void* from, size_t bytes) {
    if (bytes > 0) memcpy(to_, from, bytes);
    to_ += bytes;
  }
  // All layouts, then all their ranges.
  void write_layouts(Layouts layouts) {
    for (const offpath_layout_t& layout : layouts) {
      write(session::LayoutRecord{layout.size_bytes, layout.extent_bytes, layout.ranges_count, 0});
    }
    for (const offpath_layout_t& layout : layouts) {
      for (const offpath_range_t& range : std::span(layout.ranges, layout.ranges_count)) {
        write(session::RangeRecord{range.offset_bytes, range.bytes});
      }
    }
  }

 private:
  uint8_t* to_;
};

}  // namespace offpath::client
