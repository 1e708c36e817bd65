// SPDX-License-Identifier: BSD-3-Clause
// Reduction up a binomial tree over the nodes: log2(nodes) hops, for short vectors. Nodes are combined in their order,
// counted from the root's. Source: e.g. Thakur, Rabenseifner, Gropp (IJHPCA 2005).
#include "ops/collectives/expansions.hpp"
#include "ops/collectives/owners.hpp"
#include "ops/collectives/spread.hpp"

namespace offpath::ops {

void expand_reduce_binomial(const Expansion& expansion) {
  const auto& [collective, topology, tuning, graph] = expansion;
  const Block& send = collective.send.front();
  const uint32_t root = collective.root;
  const uint32_t root_node = topology.node_of(root);
  const Segments segments{send.bytes, expansion.segment_bytes(send.bytes)};
  const Tree tree = binomial_tree(root_node, topology.node(), topology.nodes());
  Slots slots(expansion, static_cast<uint32_t>(topology.neighbours().size() - 1 + tree.children.size()),
              std::min(segments.step_bytes, send.bytes));
  PullWindow results(tuning.window);
  for (uint32_t i = 0; i < segments.count(); ++i) {
    const uint64_t bytes = segments.length(i);
    const Value own{place_of(send).plus(segments.offset(i))};
    const uint32_t handler = expansion.handler(topology.node(), i);
    if (topology.rank == handler) {
      std::vector<Contribution> contributions;
      add_neighbours(expansion, tag_of(i, kToHandler), contributions);
      for (const uint32_t child : tree.children) {
        contributions.push_back({expansion.handler(child, i), tag_of(i, kToOwner)});
      }
      // In place is no danger: the result of a segment comes after all that the root contributes to it was taken.
      const graph::Place target =
          topology.rank == root ? place_of(collective.recv.front()).plus(segments.offset(i)) : graph::Place{};
      const Value sum = fold(expansion, contributions, own, slots, topology.rank == root ? &target : nullptr, bytes);
      if (topology.node() != root_node) {
        give(graph, sum, expansion.handler(tree.parent, i), tag_of(i, kToOwner), bytes);
      } else if (topology.rank != root) {
        give(graph, sum, root, tag_of(i, kResult), bytes);
      }
      continue;
    }
    give(graph, own, handler, tag_of(i, kToHandler), bytes);
    if (topology.rank == root) {
      results.add(graph, graph.pull(handler, tag_of(i, kResult),
                                    place_of(collective.recv.front()).plus(segments.offset(i)), bytes));
    }
  }
}

}  // namespace offpath::ops
