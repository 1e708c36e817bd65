// SPDX-License-Identifier: BSD-3-Clause
// What memory an operation names. Pure.
#pragma once

#include <offpath/offpath.h>

#include <cstdint>
#include <span>
#include <vector>

namespace offpath::client::moved {

inline constexpr uint64_t kPage = 4096;
inline constexpr uint64_t kShortestBytes = 64 << 10;  // shorter stretches are not worth moving

// [begin, end)
struct Extent {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t bytes() const { return end - begin; }
  bool overlaps(const Extent& other) const { return begin < other.end && other.begin < end; }
  bool operator==(const Extent&) const = default;
};
using Extents = std::vector<Extent>;

struct Named {
  Extents all;    // with the gaps of layouts
  Extents dense;  // whole pages that consist of bytes of the operation, in stretches worth moving
};

// What blocks of one side name, added to `out`. Blocks that adjoin are one stretch. `passing`: memory that nobody will
// use again, so it is not in `dense`.
void add_blocks(std::span<const offpath_block_t> blocks, const offpath_layout_t* layouts, bool passing, Named& out);

Named named_by(const offpath_collective_t& collective, bool sends_passing);
Named named_by(const offpath_remote_t& remote);

// The whole pages inside.
Extent pages_inside(const Extent& extent);
// What of `extent` lies in none of `others`, which are in order and do not overlap.
Extents minus(const Extent& extent, std::span<const Extent> others);

}  // namespace offpath::client::moved
