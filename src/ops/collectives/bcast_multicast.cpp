// SPDX-License-Identifier: BSD-3-Clause
// Broadcast by multicast: the root's node sends to all others at once, however many there are. Source: Khalilov et al. (SC'24).
#include "ops/collectives/bcast.hpp"
#include "ops/collectives/expansions.hpp"
#include "ops/collectives/multicast.hpp"

namespace offpath::ops {

void expand_bcast_multicast(const Expansion& expansion) {
  const auto& [collective, topology, tuning, graph] = expansion;
  const Block& block = bcast_block(expansion);
  const uint32_t leader = topology.leader(topology.node());
  const bool at_home = topology.node() == topology.node_of(collective.root);
  const uint32_t giver = at_home ? collective.root : leader;  // of this node
  const uint32_t tag = tag_of(0, kByMulticast);
  graph.shortfall = OFFPATH_ERR_TRUNCATED;  // nodes that state different lengths end with that
  uint32_t here = graph::kNoStep;
  std::vector<uint32_t> before;
  if (topology.rank != giver) {
    here = graph.pull(giver, tag, place_of(block), block.bytes);
    before.push_back(here);
  }
  if (topology.rank == leader) {
    std::vector<std::vector<graph::Multicast::Piece>> parts(topology.nodes());
    parts[topology.node_of(collective.root)].push_back({place_of(block), block.bytes});
    const uint32_t step = multicast_parts(expansion, std::move(parts), before);
    if (!at_home) here = step;
  }
  if (topology.rank != giver) return;
  for (const uint32_t member : topology.neighbours()) {
    if (member != topology.rank) graph.offer(member, tag, place_of(block), block.bytes, here, block.bytes);
  }
}

}  // namespace offpath::ops
