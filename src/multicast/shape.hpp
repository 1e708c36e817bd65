// SPDX-License-Identifier: BSD-3-Clause
// Shape: what bytes of a multicast task have which number. A task's nodes send a part each, parts are cut into chunks, and
// chunks are numbered through all parts in the order of nodes. Equal on all nodes. Pure. docs/design/0022-multicast.md
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace offpath::multicast {

// Chunks of one part, one after the other.
struct Chunks {
  uint32_t first = 0, count = 0;
  bool operator==(const Chunks&) const = default;
};

inline constexpr uint32_t kMostChunks = uint32_t{1} << 31;  // the bit above says something else (packs.hpp)

class Shape {
 public:
  // Nothing: no nodes, or more chunks than there are numbers; another algorithm has to do it.
  static std::optional<Shape> make(std::vector<uint64_t> part_bytes, uint32_t chunk_bytes) {
    Shape shape;
    if (part_bytes.empty() || part_bytes.size() >= UINT32_MAX || chunk_bytes == 0) return std::nullopt;
    uint64_t next = 0;
    for (const uint64_t bytes : part_bytes) {
      next += bytes / chunk_bytes + (bytes % chunk_bytes != 0 ? 1 : 0);
      if (next >= kMostChunks) return std::nullopt;
      shape.first_.push_back(static_cast<uint32_t>(next));
    }
    shape.bytes_ = std::move(part_bytes);
    shape.chunk_bytes_ = chunk_bytes;
    return shape;
  }

  uint32_t nodes() const { return static_cast<uint32_t>(bytes_.size()); }
  uint32_t chunks() const { return first_.back(); }
  Chunks part(uint32_t node) const { return {first_[node], first_[node + 1] - first_[node]}; }
  uint64_t part_bytes(uint32_t node) const { return bytes_[node]; }
  // Whose it is. Precondition: chunk < chunks().
  uint32_t owner(uint32_t chunk) const {
    return static_cast<uint32_t>(std::upper_bound(first_.begin(), first_.end(), chunk) - first_.begin() - 1);
  }
  // Where chunks of that part lie in it, and how long they are together.
  uint64_t offset(uint32_t node, uint32_t chunk) const { return uint64_t{chunk - first_[node]} * chunk_bytes_; }
  uint64_t bytes(uint32_t node, const Chunks& run) const {
    const uint64_t from = offset(node, run.first);
    return std::min(uint64_t{run.count} * chunk_bytes_, bytes_[node] - from);
  }

 private:
  std::vector<uint64_t> bytes_;
  std::vector<uint32_t> first_{0};  // by node, and behind the last one
  uint32_t chunk_bytes_ = 0;
};

}  // namespace offpath::multicast
