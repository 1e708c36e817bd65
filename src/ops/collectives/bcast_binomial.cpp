// SPDX-License-Identifier: BSD-3-Clause
// Broadcast along a binomial tree over the nodes: log2(nodes) hops, for short messages.
#include "ops/collectives/bcast.hpp"
#include "ops/collectives/expansions.hpp"

namespace offpath::ops {

void expand_bcast_binomial(const Expansion& expansion) {
  const Topology& topology = expansion.topology;
  bcast_along(expansion, binomial_tree(topology.node_of(expansion.collective.root), topology.node(), topology.nodes()),
              kAlongTree);
}

}  // namespace offpath::ops
