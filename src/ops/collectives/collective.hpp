// SPDX-License-Identifier: BSD-3-Clause
// Collectives: from what one member asked for to the graph of steps its worker runs. Pure functions: every member of
// the team computes its own graph from its own arguments, and the graphs fit together because all agree on kind,
// algorithm, sizes and topology.
//
// Adding an algorithm: one file with one expand_<kind>_<algorithm> function, one line in expansions.hpp and one row in
// expand.cpp. Start from allgather_direct.cpp, the shortest one that knows about nodes.
#pragma once

#include "collective/collective.hpp"
#include "graph/graph.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace offpath::ops {

// Who lives where. Equal on all members of a team but for `rank`.
struct Topology {
  // What is long. It never changes and is there once in a process, for all members and teams of which it is the same.
  struct Nodes {
    std::vector<uint32_t> node_of;               // by rank; nodes are numbered in the order of their first rank
    std::vector<std::vector<uint32_t>> members;  // by node: its ranks, ascending; the first is the node's leader
    bool operator==(const Nodes&) const = default;
  };
  uint32_t rank = 0;  // this member
  std::shared_ptr<const Nodes> nodes_there = std::make_shared<const Nodes>();

  // `node_keys`: by rank, equal for members of one node. From any thread; for each team, not for each operation.
  static Topology make(uint32_t rank, const std::vector<uint64_t>& node_keys);

  uint32_t node_of(uint32_t member) const { return nodes_there->node_of[member]; }
  const std::vector<uint32_t>& members(uint32_t node) const { return nodes_there->members[node]; }
  uint32_t size() const { return static_cast<uint32_t>(nodes_there->node_of.size()); }
  uint32_t nodes() const { return static_cast<uint32_t>(nodes_there->members.size()); }
  uint32_t node() const { return node_of(rank); }
  const std::vector<uint32_t>& neighbours() const { return members(node()); }  // of the own node, this member included
  uint32_t leader(uint32_t node) const { return members(node).front(); }
  bool leads() const { return leader(node()) == rank; }
};

using collective::Collective;
using graph::place_of;
using memory::Block;
static_assert(collective::kReservedTag == graph::kEndingTag);

// What DEFAULT, or an algorithm the kind does not know, stands for. Precondition: collective::check() passed. Goes by the bytes of
// the larger side, which all members know alike.
offpath_algorithm_t resolve_algorithm(const Collective& collective, const Topology& topology);

// What DEFAULT stands for from which size on, ascending.
struct DefaultAlgorithm {
  uint64_t from_bytes;
  offpath_algorithm_t algorithm;
};
std::vector<DefaultAlgorithm> default_algorithms(offpath_collective_kind_t kind);

// How long vectors are cut, equal on all members. The defaults are for use; tests make everything small.
struct Tuning {
  uint64_t segment_bytes = uint64_t{112} << 10;  // two chunks; a multiple of 64
  uint32_t segments_max = 4096;                  // of one vector: longer vectors get longer segments
  uint32_t window = 4;                           // segments of one source under way at a time, at least 2
  uint64_t scratch_bytes = uint64_t{8} << 20;    // shrinks the window, down to 2, where there are many sources
  uint32_t pairwise_nodes = 16;                  // so many exchange short parts with each other, more by halving
};

// Precondition: collective::check() passed. Consumes the layouts.
graph::Graph expand(Collective collective, const Topology& topology, const Tuning& tuning = {});

}  // namespace offpath::ops
