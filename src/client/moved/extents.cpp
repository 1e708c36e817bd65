// SPDX-License-Identifier: BSD-3-Clause
#include "client/moved/extents.hpp"

#include <algorithm>

namespace offpath::client::moved {
namespace {

constexpr Extent kEverywhere{0, UINT64_MAX};

// From the first byte to the last; the layout was checked.
Extent span_of(const offpath_block_t& block, const offpath_layout_t& layout) {
  __int128 low = INT64_MAX, high = INT64_MIN;
  for (const offpath_range_t& range : std::span(layout.ranges, layout.ranges_count)) {
    low = std::min<__int128>(low, range.offset_bytes);
    high = std::max<__int128>(high, static_cast<__int128>(range.offset_bytes) + range.bytes);
  }
  const __int128 last = static_cast<__int128>((block.bytes - 1) / layout.size_bytes) * layout.extent_bytes;
  const auto base = static_cast<__int128>(reinterpret_cast<uint64_t>(block.address));
  const __int128 begin = base + low + std::min<__int128>(last, 0), end = base + high + std::max<__int128>(last, 0);
  if (begin < 0 || end > UINT64_MAX || begin > end) return kEverywhere;
  return {static_cast<uint64_t>(begin), static_cast<uint64_t>(end)};
}

// The stretches of a block with a layout, unless that are too many to look at.
void add_stretches(const offpath_block_t& block, const offpath_layout_t& layout, Extents& stretches) {
  constexpr uint64_t kMost = 1024;  // of all blocks of a side
  const uint64_t elements = (block.bytes - 1) / layout.size_bytes + 1;
  const bool whole = elements * layout.size_bytes == block.bytes;
  if (!whole || layout.ranges_count == 0 || elements > kMost / layout.ranges_count ||
      stretches.size() + elements * layout.ranges_count > kMost || span_of(block, layout) == kEverywhere)
    return;
  const auto base = reinterpret_cast<int64_t>(block.address);
  for (uint64_t element = 0; element < elements; ++element) {
    for (const offpath_range_t& range : std::span(layout.ranges, layout.ranges_count)) {
      const int64_t begin = base + static_cast<int64_t>(element) * layout.extent_bytes + range.offset_bytes;
      stretches.push_back({static_cast<uint64_t>(begin), static_cast<uint64_t>(begin) + range.bytes});
    }
  }
}

void add_dense(Extents& stretches, Extents& dense) {
  std::sort(stretches.begin(), stretches.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (size_t i = 0; i < stretches.size();) {
    Extent whole = stretches[i];
    for (++i; i < stretches.size() && stretches[i].begin <= whole.end; ++i) {
      whole.end = std::max(whole.end, stretches[i].end);
    }
    const Extent pages = pages_inside(whole);
    if (pages.bytes() >= kShortestBytes) dense.push_back(pages);
  }
}

}  // namespace

Extent pages_inside(const Extent& extent) {
  if (extent.begin > UINT64_MAX - kPage) return {};
  const Extent pages{(extent.begin + kPage - 1) / kPage * kPage, extent.end / kPage * kPage};
  return pages.begin < pages.end ? pages : Extent{};
}

Extents minus(const Extent& extent, std::span<const Extent> others) {
  Extents left;
  uint64_t at = extent.begin;
  for (const Extent& other : others) {
    if (!other.overlaps(extent)) continue;
    if (other.begin > at) left.push_back({at, other.begin});
    at = std::max(at, other.end);
  }
  if (at < extent.end) left.push_back({at, extent.end});
  return left;
}

void add_blocks(std::span<const offpath_block_t> blocks, const offpath_layout_t* layouts, bool passing, Named& out) {
  Extents stretches;
  for (const offpath_block_t& block : blocks) {
    if (block.bytes == 0) continue;
    const auto address = reinterpret_cast<uint64_t>(block.address);
    if (block.layout != 0) {
      out.all.push_back(span_of(block, layouts[block.layout - 1]));
      if (!passing) add_stretches(block, layouts[block.layout - 1], stretches);
    } else if (block.bytes <= UINT64_MAX - address) {
      out.all.push_back({address, address + block.bytes});
      if (!passing) stretches.push_back(out.all.back());
    }
  }
  add_dense(stretches, out.dense);
}

Named named_by(const offpath_collective_t& c, bool sends_passing) {
  Named out;
  add_blocks({c.send, c.send_count}, c.layouts, sends_passing, out);
  add_blocks({c.recv, c.recv_count}, c.layouts, false, out);
  return out;
}

Named named_by(const offpath_remote_t& remote) {
  Named out;
  add_blocks({&remote.send, 1}, remote.layouts, false, out);
  add_blocks({&remote.result, 1}, remote.layouts, false, out);
  return out;
}

}  // namespace offpath::client::moved
