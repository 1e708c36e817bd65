// SPDX-License-Identifier: BSD-3-Clause
// What all expansions share: the arguments, the cutting of blocks into segments, and the numbering of transfers.
//
// Every transfer of an operation belongs to a segment with a number that all members compute alike. A
// segment waits only for itself at an earlier stage or for segments before it, so graphs cannot deadlock.
#pragma once

#include "ops/collectives/collective.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace offpath::ops {

// Elements are powers of two up to this, and scratch is aligned to it: no cut goes through an element.
inline constexpr uint64_t kCutAlignment = 64;

constexpr uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

// One expansion at work: arguments in, graph out.
struct Expansion {
  const Collective& collective;
  const Topology& topology;
  const Tuning& tuning;
  graph::Graph& graph;

  // Length of the segments of a vector of `total` bytes.
  uint64_t segment_bytes(uint64_t total) const {
    const uint64_t shortest = round_up((total + tuning.segments_max - 1) / tuning.segments_max, kCutAlignment);
    return std::max(tuning.segment_bytes, shortest);
  }
  // The member of a node that does the node's work for a segment; `key` deals the segments out.
  uint32_t handler(uint32_t node, uint64_t key) const {
    const auto& members = topology.members(node);
    return members[key % members.size()];
  }
};

// A block cut into stretches of `step_bytes`; the last may be shorter.
struct Segments {
  uint64_t bytes = 0;
  uint64_t step_bytes = 1;

  uint32_t count() const { return static_cast<uint32_t>((bytes + step_bytes - 1) / step_bytes); }
  uint64_t offset(uint32_t index) const { return index * step_bytes; }
  uint64_t length(uint32_t index) const { return std::min(step_bytes, bytes - offset(index)); }
};

// Tag of a segment's transfer. A phase is used at most once between two members for one segment.
constexpr uint32_t kPhases = 64;
constexpr uint32_t tag_of(uint32_t segment, uint32_t phase) { return segment * kPhases + phase; }

// Keeps at most `limit` pulls under way: streams share the wire, so what is asked for at once arrives at once, late.
class PullWindow {
 public:
  explicit PullWindow(uint32_t limit) : pulls_(limit, graph::kNoStep) {}
  // To be called for the pulls in the order in which their data becomes available.
  void add(graph::Graph& graph, uint32_t pull) {
    graph.order(pulls_[next_], pull);
    pulls_[next_] = pull;
    next_ = (next_ + 1) % pulls_.size();
  }

 private:
  std::vector<uint32_t> pulls_;
  size_t next_ = 0;
};

}  // namespace offpath::ops
