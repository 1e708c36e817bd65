// SPDX-License-Identifier: BSD-3-Clause
// Allgather by multicast: each node sends its members' blocks to all others at once. Source: Khalilov et al. (SC'24).
#include "ops/collectives/expansions.hpp"
#include "ops/collectives/multicast.hpp"

namespace offpath::ops {

void expand_allgather_multicast(const Expansion& expansion) {
  const auto& [collective, topology, tuning, graph] = expansion;
  const Block& own = collective.send.front();
  const graph::Place own_target = place_of(collective.recv[topology.rank]);
  std::vector<uint32_t> near;  // pulls of neighbours' blocks
  for (const uint32_t member : topology.neighbours()) {
    if (member == topology.rank) continue;
    graph.offer(member, tag_of(topology.rank, 0), place_of(own), own.bytes);
    near.push_back(
        graph.pull(member, tag_of(member, 0), place_of(collective.recv[member]), collective.recv[member].bytes));
  }
  uint32_t arrived = graph::kNoStep;
  if (topology.leads()) {
    std::vector<std::vector<graph::Multicast::Piece>> parts(topology.nodes());
    for (uint32_t member = 0; member < topology.size(); ++member) {
      const Block& block = member == topology.rank ? own : collective.recv[member];
      parts[topology.node_of(member)].push_back({place_of(block), block.bytes});
    }
    arrived = multicast_parts(expansion, std::move(parts), near);
  }
  PullWindow window(tuning.window);
  for (uint32_t member = 0; member < topology.size(); ++member) {
    if (topology.node_of(member) == topology.node()) continue;
    const Block& block = collective.recv[member];
    if (!topology.leads()) {
      window.add(graph, graph.pull(topology.leader(topology.node()), tag_of(member, 0), place_of(block), block.bytes));
      continue;
    }
    for (const uint32_t neighbour : topology.neighbours()) {
      if (neighbour != topology.rank) graph.offer(neighbour, tag_of(member, 0), place_of(block), block.bytes, arrived);
    }
  }
  if (collective.own_blocks == collective::OwnBlocks::by_service && own.bytes > 0 && place_of(own) != own_target) {
    graph.copy(place_of(own), own_target, own.bytes);
  }
}

}  // namespace offpath::ops
