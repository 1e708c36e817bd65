// SPDX-License-Identifier: BSD-3-Clause
// Broadcast along the chain of nodes that begins with the root's: every node passes a segment on while it gets the
// next ones, so for long messages all links work at once. Source: pipelined broadcast, e.g. Pjesivac-Grbovic et al.
// (Cluster Computing 2007).
#include "ops/collectives/expansions.hpp"
#include "ops/collectives/spread.hpp"

namespace offpath::ops {

void expand_bcast_chain(const Expansion& expansion) {
  const auto& [collective, topology, tuning, graph] = expansion;
  const Block& block = topology.rank == collective.root ? collective.send.front() : collective.recv.front();
  spread_block(expansion, chain_tree(topology.node_of[collective.root], topology.node(), topology.nodes()),
               cut_to_spread(expansion, block.bytes, block.bytes, true), collective.root, block.place, 0);
}

}  // namespace offpath::ops
