// SPDX-License-Identifier: BSD-3-Clause
// What the multicast algorithms have in common: on each node the leader takes part for all. What its neighbours send it pulls
// into its own receive buffer, where it needs it anyway, and they pull from it what has come.
#pragma once

#include "ops/collectives/segments.hpp"

namespace offpath::ops {

// The leader's step, after the pulls in `ready`; kNoStep where there is only one node. `parts`: by node.
inline uint32_t multicast_parts(const Expansion& expansion, std::vector<std::vector<graph::Multicast::Piece>> parts,
                                const std::vector<uint32_t>& ready) {
  const Topology& topology = expansion.topology;
  if (topology.nodes() == 1) return graph::kNoStep;
  graph::Multicast plan;
  for (uint32_t node = 0; node < topology.nodes(); ++node) plan.members.push_back(topology.leader(node));
  plan.own = topology.node();
  plan.parts = std::move(parts);
  const uint32_t step = expansion.graph.multicast(std::move(plan));
  for (const uint32_t pull : ready) expansion.graph.order(pull, step);
  return step;
}

}  // namespace offpath::ops
