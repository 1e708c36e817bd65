// SPDX-License-Identifier: BSD-3-Clause
#include "memory/layout.hpp"

namespace offpath::memory {

base::Status check_layout(const Layout& layout) {
  if (is_layout(layout.size_bytes, layout.ranges)) return {};
  return base::Status::error(
      OFFPATH_ERR_ARGUMENT,
      "the ranges of a layout are not its %llu bytes, none or too many (they must agree). Check both",
      static_cast<unsigned long long>(layout.size_bytes));
}

uint64_t count_ranges(const std::vector<Layout>& layouts) {
  uint64_t count = 0;
  for (const Layout& layout : layouts) count += layout.ranges.size();
  return count;
}

void write_layouts(const std::vector<Layout>& layouts, base::RecordWriter& writer) {
  for (const Layout& layout : layouts) {
    writer.write(LayoutRecord{layout.size_bytes, layout.extent_bytes, static_cast<uint32_t>(layout.ranges.size()), 0});
  }
  for (const Layout& layout : layouts) writer.write_all(std::span<const Range>(layout.ranges));
}

bool read_layouts(base::RecordReader& reader, uint32_t layouts_count, uint32_t ranges_count,
                  std::vector<Layout>& layouts) {
  std::vector<LayoutRecord> records;
  if (!reader.read_all(records, layouts_count)) return false;
  uint64_t ranges = 0;
  for (const LayoutRecord& record : records) ranges += record.ranges_count;
  if (ranges != ranges_count) return false;
  layouts.reserve(records.size());
  for (const LayoutRecord& record : records) {
    Layout& layout = layouts.emplace_back();
    layout.size_bytes = record.size_bytes;
    layout.extent_bytes = record.extent_bytes;
    if (!reader.read_all(layout.ranges, record.ranges_count)) return false;
  }
  return true;
}

}  // namespace offpath::memory
