// SPDX-License-Identifier: BSD-3-Clause
// Allreduce in parts: each node combines one part of the vector and gives the result to all others. For long vectors:
// no node moves more than about twice the vector. Source: Rabenseifner (ICCS 2004), both halves pairwise, which works
// for any number of nodes and lets results travel while other pieces are still being combined. Where many nodes
// would have short parts, their number costs more than that saves: then by halving.
#include "ops/collectives/expansions.hpp"
#include "ops/collectives/halving.hpp"
#include "ops/collectives/owners.hpp"
#include "ops/collectives/spread.hpp"

namespace offpath::ops {

void expand_allreduce_rabenseifner(const Expansion& expansion) {
  const auto& [collective, topology, tuning, graph] = expansion;
  const Block& send = collective.send.front();
  const bool short_parts = send.bytes / topology.nodes() < tuning.segment_bytes / 2;
  if (short_parts && topology.nodes() > tuning.pairwise_nodes) return expand_allreduce_halving(expansion);
  const std::vector<Piece> pieces = cut_parts(expansion, parts_of_nodes(expansion, send.bytes), topology.node());
  OwnerReduce reduce(expansion, longest_of(pieces));
  std::vector<Spread> spreads;
  for (uint32_t node = 0; node < topology.nodes(); ++node) {
    spreads.emplace_back(expansion, star_tree(node, topology.node(), topology.nodes()));
  }
  for (const Piece& piece : pieces) {
    // In place is no danger: the result of a piece comes after all contributions to it were taken.
    const graph::Place target = place_of(collective.recv.front()).plus(piece.offset);
    const Value result = reduce.add(piece, Value{place_of(send).plus(piece.offset)}, &target);
    spreads[piece.part].segment(piece.owner, piece.key, tag_of(piece.number, kResult), target, piece.bytes,
                                result.ready);
  }
}

}  // namespace offpath::ops
