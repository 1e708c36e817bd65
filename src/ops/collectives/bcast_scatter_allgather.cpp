// SPDX-License-Identifier: BSD-3-Clause
// Broadcast in parts: each node fetches its part from the root and gives it to all other nodes. Source: van de Geijn's
// scatter and allgather, Barnett et al. (Supercomputing 1994), the allgather pairwise.
#include "ops/collectives/bcast.hpp"
#include "ops/collectives/expansions.hpp"
#include "ops/collectives/owners.hpp"

namespace offpath::ops {
namespace {

// From the root to node `via`, from there to all others.
Tree via_tree(uint32_t root, uint32_t via, uint32_t node, uint32_t nodes) {
  if (node == root && via != root) return {root, {via}};
  Tree tree = star_tree(via, node, nodes);
  if (node == via) tree.parent = root;
  std::erase(tree.children, root);
  return tree;
}

}  // namespace

void expand_bcast_scatter_allgather(const Expansion& expansion) {
  const auto& [collective, topology, tuning, graph] = expansion;
  const Block& block = bcast_block(expansion);
  const std::vector<Part> parts = parts_of_nodes(expansion, block.bytes);
  std::vector<Segments> segments;
  std::vector<uint32_t> first{0};
  for (const Part& part : parts) {
    segments.push_back(cut_to_spread(expansion, part.bytes, block.bytes, true));
    first.push_back(first.back() + segments.back().count());
  }
  graph.shortfall = OFFPATH_ERR_TRUNCATED;  // a part of another length lies elsewhere
  for (uint32_t i = 0; i < topology.nodes(); ++i) {
    const uint32_t via = (topology.node() + i) % topology.nodes();
    spread_block(expansion, via_tree(topology.node_of(collective.root), via, topology.node(), topology.nodes()),
                 segments[via], collective.root, place_of(block).plus(parts[via].offset), first[via], kInParts,
                 block.bytes - parts[via].offset);
  }
}

}  // namespace offpath::ops
