// SPDX-License-Identifier: BSD-3-Clause
// Allreduce around the ring of nodes: part k starts at node k + 1, each node adds its contribution, node k finishes it
// and sends it round once more. A node only ever talks to its two neighbours. Nodes are combined in ring order, not in
// rank order. Source: Patarasuk, Yuan (JPDC 2009).
#include "ops/collectives/expansions.hpp"
#include "ops/collectives/owners.hpp"
#include "ops/collectives/spread.hpp"

namespace offpath::ops {

void expand_allreduce_ring(const Expansion& expansion) {
  const auto& [collective, topology, tuning, graph] = expansion;
  const Block& send = collective.send.front();
  const uint32_t nodes = topology.nodes();
  const uint32_t before = (topology.node() + nodes - 1) % nodes;
  const uint32_t after = (topology.node() + 1) % nodes;
  // In the order in which they come by: what this node starts, what its neighbour has started, ...
  const std::vector<Piece> pieces = cut_parts(expansion, parts_of_nodes(expansion, send.bytes), before, true);
  Slots slots(expansion, static_cast<uint32_t>(topology.neighbours().size()), longest_of(pieces));
  std::vector<Spread> spreads;
  for (uint32_t node = 0; node < nodes; ++node) {
    spreads.emplace_back(expansion, chain_tree(node, topology.node(), nodes));
  }
  for (const Piece& piece : pieces) {
    const Value own{place_of(send).plus(piece.offset)};
    // In place is no danger: the result of a piece comes after all contributions to it were taken.
    const graph::Place target = place_of(collective.recv.front()).plus(piece.offset);
    const uint32_t handler = expansion.handler(topology.node(), piece.key);
    const bool starts = piece.part == before && nodes > 1;
    const bool finishes = piece.part == topology.node();
    Value sum;
    if (topology.rank == handler) {
      std::vector<Contribution> contributions;
      if (!starts && nodes > 1) {
        contributions.push_back({expansion.handler(before, piece.key), tag_of(piece.number, kToOwner)});
      }
      add_neighbours(expansion, tag_of(piece.number, kToHandler), contributions);
      sum = fold(expansion, contributions, own, slots, finishes ? &target : nullptr, piece.bytes);
      if (!finishes) {
        give(graph, sum, expansion.handler(after, piece.key), tag_of(piece.number, kToOwner), piece.bytes);
      }
    } else {
      give(graph, own, handler, tag_of(piece.number, kToHandler), piece.bytes);
    }
    spreads[piece.part].segment(piece.owner, piece.key, tag_of(piece.number, kResult), target, piece.bytes,
                                finishes ? sum.ready : graph::kNoStep);
  }
}

}  // namespace offpath::ops
