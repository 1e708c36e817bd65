// SPDX-License-Identifier: BSD-3-Clause
// Reduction in parts: each node combines one part of the vector, the root fetches the results. For long vectors: no
// node moves more than about twice the vector. Source: Rabenseifner (ICCS 2004), both halves pairwise.
#include "ops/collectives/expansions.hpp"
#include "ops/collectives/owners.hpp"

namespace offpath::ops {

void expand_reduce_rabenseifner(const Expansion& expansion) {
  const auto& [collective, topology, tuning, graph] = expansion;
  const Block& send = collective.send.front();
  const bool is_root = topology.rank == collective.root;
  const std::vector<Piece> pieces = cut_parts(expansion, parts_of_nodes(expansion, send.bytes), topology.node(), false);
  OwnerReduce reduce(expansion, longest_of(pieces));
  PullWindow results(tuning.window * topology.nodes());
  for (const Piece& piece : pieces) {
    // In place is no danger: the result of a piece comes after all that the root contributes to it was taken.
    const graph::Place target = is_root ? place_of(collective.recv.front()).plus(piece.offset) : graph::Place{};
    const Value own{place_of(send).plus(piece.offset)};
    const Value result = reduce.add(piece, own, is_root ? &target : nullptr);
    if (is_root && piece.owner != topology.rank) {
      results.add(graph, graph.pull(piece.owner, tag_of(piece.number, kResult), target, piece.bytes));
    } else if (!is_root && piece.owner == topology.rank) {
      give(graph, result, collective.root, tag_of(piece.number, kResult), piece.bytes);
    }
  }
}

}  // namespace offpath::ops
