// SPDX-License-Identifier: BSD-3-Clause
// Broadcast along the chain of nodes that begins with the root's: every node passes a segment on while it gets the
// next ones, so for long messages all links work at once. Source: pipelined broadcast, e.g. Pjesivac-Grbovic et al.
// (Cluster Computing 2007).
#include "ops/collectives/bcast.hpp"
#include "ops/collectives/expansions.hpp"

namespace offpath::ops {

void expand_bcast_chain(const Expansion& expansion) {
  const Topology& topology = expansion.topology;
  bcast_along(expansion, chain_tree(topology.node_of(expansion.collective.root), topology.node(), topology.nodes()),
              topology.nodes() > 2 ? kAlongChain : kAlongTree);  // which are one up to there
}

}  // namespace offpath::ops
