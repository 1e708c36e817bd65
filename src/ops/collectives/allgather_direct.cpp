// SPDX-License-Identifier: BSD-3-Clause
// Allgather, every block straight from its owner: each node fetches it once, and its members share out who does.
#include "ops/collectives/allgather.hpp"
#include "ops/collectives/expansions.hpp"

namespace offpath::ops {

void expand_allgather_direct(const Expansion& expansion) { gather_blocks(expansion, star_tree, false); }

}  // namespace offpath::ops
