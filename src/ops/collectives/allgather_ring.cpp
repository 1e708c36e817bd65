// SPDX-License-Identifier: BSD-3-Clause
// Allgather around the ring of nodes: a node only ever talks to its two neighbours. Source: e.g. Thakur, Rabenseifner,
// Gropp (IJHPCA 2005).
#include "ops/collectives/allgather.hpp"
#include "ops/collectives/expansions.hpp"

namespace offpath::ops {

void expand_allgather_ring(const Expansion& expansion) { gather_blocks(expansion, chain_tree, true); }

}  // namespace offpath::ops
