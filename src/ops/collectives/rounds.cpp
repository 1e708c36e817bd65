// SPDX-License-Identifier: BSD-3-Clause
#include "ops/collectives/rounds.hpp"

#include "ops/collectives/owners.hpp"
#include "ops/collectives/spread.hpp"

namespace offpath::ops {

void allreduce_in_rounds(const Expansion& expansion, const Segments& segments, uint32_t slots_in_rounds,
                         const CombineInRounds& combine) {
  const auto& [collective, topology, tuning, graph] = expansion;
  const Block& send = collective.send.front();
  const uint32_t node = topology.node();
  const Rounds rounds(topology.nodes());
  const bool rests = rounds.rests(node), takes_partner = rounds.takes_partner(node);
  const uint32_t partner = node ^ 1;
  const auto neighbours = static_cast<uint32_t>(topology.neighbours().size());
  Slots slots(expansion, neighbours - 1 + (takes_partner ? 1 : 0) + slots_in_rounds,
              std::min(segments.step_bytes, send.bytes));
  Tree tree{rests ? partner : node, {}};
  if (takes_partner) tree.children.push_back(partner);
  Spread spread(expansion, tree);

  for (uint32_t i = 0; i < segments.count(); ++i) {
    const uint64_t bytes = segments.length(i);
    const graph::Place target = place_of(collective.recv.front()).plus(segments.offset(i));
    const auto handler = [&](uint32_t of_node) { return expansion.handler(of_node, i); };
    Buffer own_buffer{place_of(send).plus(segments.offset(i)), false, {}, {}};
    const Value own = Value::of(own_buffer);
    uint32_t ready = graph::kNoStep;
    if (topology.rank != handler(node)) {
      give(graph, own, handler(node), tag_of(i, kToHandler), bytes);
    } else {
      std::vector<Contribution> contributions;
      if (takes_partner) contributions.push_back({handler(partner), tag_of(i, kToOwner)});
      add_neighbours(expansion, tag_of(i, kToHandler), contributions);
      const bool all = rounds.count() == 0 && !rests;
      const Value sum = fold(expansion, contributions, own, slots, all ? &target : nullptr, bytes);
      if (rests) {
        give(graph, sum, handler(partner), tag_of(i, kToOwner), bytes);
      } else {
        ready = combine({rounds, slots, own_buffer, i, bytes, target}, sum);
      }
    }
    spread.segment(handler(rests ? partner : node), i, tag_of(i, kResult), target, bytes, ready);
  }
}

}  // namespace offpath::ops
