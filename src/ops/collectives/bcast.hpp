// SPDX-License-Identifier: BSD-3-Clause
// What the broadcasts have in common. The members may have been told different lengths, which MPI forbids and programs
// do: a member with room for less than the root sends is truncated, one with room for more falls short, none waits for
// ever.
// So the number of a segment says where it lies, whatever the length, and members tell each other how much they have.
#pragma once

#include "ops/collectives/spread.hpp"

namespace offpath::ops {

// Phases: where members have chosen different ways, nothing of one is taken for something of another.
inline constexpr uint32_t kAlongTree = 0, kAlongChain = 1, kInParts = 2, kByMulticast = 3;

inline const Block& bcast_block(const Expansion& expansion) {
  const Collective& collective = expansion.collective;
  return expansion.topology.rank == collective.root ? collective.send.front() : collective.recv.front();
}

// The whole block along one tree.
inline void bcast_along(const Expansion& expansion, Tree tree, uint32_t phase) {
  const Block& block = bcast_block(expansion);
  const Segments segments = cut_to_spread(expansion, block.bytes, block.bytes, true);
  // Of very long vectors the length of the segments follows from that of the vector: what came then lies nowhere.
  const bool cut_alike = expansion.segment_bytes(block.bytes) == expansion.tuning.segment_bytes;
  expansion.graph.shortfall = cut_alike ? OFFPATH_ERR_SHORT : OFFPATH_ERR_TRUNCATED;
  spread_block(expansion, std::move(tree), segments, expansion.collective.root, place_of(block), 0, phase, block.bytes);
}

}  // namespace offpath::ops
