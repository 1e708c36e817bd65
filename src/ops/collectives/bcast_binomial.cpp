// SPDX-License-Identifier: BSD-3-Clause
// Broadcast along a binomial tree over the nodes: log2(nodes) hops, for short messages.
#include "ops/collectives/expansions.hpp"
#include "ops/collectives/spread.hpp"

namespace offpath::ops {

void expand_bcast_binomial(const Expansion& expansion) {
  const auto& [collective, topology, tuning, graph] = expansion;
  const Block& block = topology.rank == collective.root ? collective.send.front() : collective.recv.front();
  spread_block(expansion, binomial_tree(topology.node_of[collective.root], topology.node(), topology.nodes()),
               cut_to_spread(expansion, block.bytes, block.bytes, true), collective.root, block.place, 0);
}

}  // namespace offpath::ops
