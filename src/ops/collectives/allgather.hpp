// SPDX-License-Identifier: BSD-3-Clause
// What the allgather algorithms have in common: every member's block spreads along a tree of its own.
#pragma once

#include "ops/collectives/spread.hpp"

namespace offpath::ops {

using TreeShape = Tree (*)(uint32_t root, uint32_t node, uint32_t nodes);

// `deep`: does the shape have nodes that pass on?
void gather_blocks(const Expansion& expansion, TreeShape shape, bool deep);

}  // namespace offpath::ops
