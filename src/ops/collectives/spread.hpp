// SPDX-License-Identifier: BSD-3-Clause
// Bringing data from the member that has it to all others: along a tree over the nodes, where each segment enters a
// node once, fetched by the member whose turn it is, and from that one to the node's others.
#pragma once

#include "ops/collectives/segments.hpp"

namespace offpath::ops {

// The place of one node in a tree over the nodes.
struct Tree {
  uint32_t parent = 0;  // not of the root
  std::vector<uint32_t> children;
};

Tree star_tree(uint32_t root, uint32_t node, uint32_t nodes);
Tree chain_tree(uint32_t root, uint32_t node, uint32_t nodes);
// Children in ascending order of their subtrees, which are contiguous when counted from the root.
Tree binomial_tree(uint32_t root, uint32_t node, uint32_t nodes);

// Segments that go along one tree, in their order.
class Spread {
 public:
  Spread(const Expansion& expansion, Tree tree)
      : expansion_(expansion),
        tree_(std::move(tree)),
        wire_(expansion.tuning.window),
        local_(expansion.tuning.window) {}

  // `holder`: the member that has the segment, on the tree's root node. `place`: at the holder where it lies once
  // `ready` is done; at the others where it shall go. `key` picks the members that fetch it. `rest`: as of Export.
  void segment(uint32_t holder, uint64_t key, uint32_t tag, graph::Place place, uint64_t bytes,
               uint32_t ready = graph::kNoStep, uint64_t rest = 0);

 private:
  const Expansion& expansion_;
  Tree tree_;
  PullWindow wire_, local_;
};

// How to cut a block of a vector of `total` bytes that spreads over trees: not at all if nobody passes anything on.
// `deep`: do the trees have nodes that pass on?
Segments cut_to_spread(const Expansion& expansion, uint64_t bytes, uint64_t total, bool deep);

// A whole block that lies with `holder` from the beginning. Its segments are numbered from `first` on,
// and fetched by a node's members in turn. Tags are of `phase`. `rest`: what the members state as the length from the
// block's beginning on, where they must be found out if they do not agree.
void spread_block(const Expansion& expansion, Tree tree, const Segments& segments, uint32_t holder, graph::Place place,
                  uint32_t first, uint32_t phase = 0, uint64_t rest = 0);

}  // namespace offpath::ops
