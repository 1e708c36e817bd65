// SPDX-License-Identifier: BSD-3-Clause
#include "ops/collectives/spread.hpp"

#include <bit>

namespace offpath::ops {

Tree star_tree(uint32_t root, uint32_t node, uint32_t nodes) {
  Tree tree{root, {}};
  if (node != root) return tree;
  for (uint32_t i = 1; i < nodes; ++i) tree.children.push_back((root + i) % nodes);
  return tree;
}

Tree chain_tree(uint32_t root, uint32_t node, uint32_t nodes) {
  Tree tree{(node + nodes - 1) % nodes, {}};
  const uint32_t next = (node + 1) % nodes;
  if (next != root) tree.children.push_back(next);
  return tree;
}

Tree binomial_tree(uint32_t root, uint32_t node, uint32_t nodes) {
  const uint32_t place = (node + nodes - root) % nodes;
  const uint32_t subtree = place == 0 ? std::bit_ceil(nodes) : place & -place;
  Tree tree{(place - (place == 0 ? 0 : subtree) + root) % nodes, {}};
  for (uint32_t distance = 1; distance < subtree && place + distance < nodes; distance *= 2) {
    tree.children.push_back((place + distance + root) % nodes);
  }
  return tree;
}

void Spread::segment(uint32_t holder, uint64_t key, uint32_t tag, graph::Place place, uint64_t bytes, uint32_t ready,
                     uint64_t rest) {
  const Topology& topology = expansion_.topology;
  graph::Graph& graph = expansion_.graph;
  const uint32_t home = topology.node_of(holder);
  const bool at_home = topology.node() == home;
  const uint32_t giver = at_home ? holder : expansion_.handler(topology.node(), key);
  if (topology.rank != holder) {
    const bool over_wire = topology.rank == giver;
    const uint32_t upstream = tree_.parent == home ? holder : expansion_.handler(tree_.parent, key);
    ready = graph.pull(over_wire ? upstream : giver, tag, place, bytes, rest);
    (over_wire ? wire_ : local_).add(graph, ready);
  }
  if (topology.rank != giver) return;
  for (const uint32_t child : tree_.children)
    graph.offer(expansion_.handler(child, key), tag, place, bytes, ready, rest);
  for (const uint32_t member : topology.neighbours()) {
    if (member != topology.rank) graph.offer(member, tag, place, bytes, ready, rest);
  }
}

Segments cut_to_spread(const Expansion& expansion, uint64_t bytes, uint64_t total, bool deep) {
  const uint32_t nodes = expansion.topology.nodes();
  const bool shared_nodes = expansion.topology.size() > nodes;
  const bool passed_on = (nodes > 1 && shared_nodes) || (nodes > 2 && deep);
  return {bytes, passed_on ? expansion.segment_bytes(total) : std::max<uint64_t>(1, bytes)};
}

void spread_block(const Expansion& expansion, Tree tree, const Segments& segments, uint32_t holder, graph::Place place,
                  uint32_t first, uint32_t phase, uint64_t rest) {
  Spread spread(expansion, std::move(tree));
  for (uint32_t i = 0; i < segments.count(); ++i) {
    spread.segment(holder, first + i, tag_of(first + i, phase), place.plus(segments.offset(i)), segments.length(i),
                   graph::kNoStep, rest == 0 ? 0 : rest - segments.offset(i));
  }
}

}  // namespace offpath::ops
