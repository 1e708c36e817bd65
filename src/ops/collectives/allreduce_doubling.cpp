// SPDX-License-Identifier: BSD-3-Clause
// Allreduce by recursive doubling over the nodes: log2(nodes) rounds in which pairs exchange what they have combined so
// far, for short vectors. Both of a pair combine with the lower nodes on the left, so all get the same bits. Source: Thakur,
// Rabenseifner, Gropp (IJHPCA 2005).
#include "ops/collectives/expansions.hpp"
#include "ops/collectives/owners.hpp"
#include "ops/collectives/rounds.hpp"
#include "ops/collectives/spread.hpp"

namespace offpath::ops {

void expand_allreduce_doubling(const Expansion& expansion) {
  const auto& [collective, topology, tuning, graph] = expansion;
  const Block& send = collective.send.front();
  const bool in_place = place_of(send) == place_of(collective.recv.front());
  const uint32_t node = topology.node();
  const Rounds rounds(topology.nodes());
  const bool takes_partner = rounds.takes_partner(node);
  const uint32_t partner = node ^ 1;
  const uint32_t rounds_count = rounds.count();
  const Segments segments{send.bytes, expansion.segment_bytes(send.bytes)};
  Slots slots(expansion,
              static_cast<uint32_t>(topology.neighbours().size()) - 1 + (takes_partner ? 1 : 0) + rounds_count,
              std::min(segments.step_bytes, send.bytes));
  Tree tree{rounds.rests(node) ? partner : node, {}};
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
      const bool all = rounds_count == 0 && !rounds.rests(node);
      Value sum = fold(expansion, contributions, own, slots, all ? &target : nullptr, bytes);
      if (rounds.rests(node)) give(graph, sum, handler(partner), tag_of(i, kToOwner), bytes);
      for (uint32_t round = 0; round < rounds_count && !rounds.rests(node); ++round) {
        const uint32_t other = rounds.other(node, round);
        give(graph, sum, handler(other), tag_of(i, kFirstRound + round), bytes);
        const Value theirs = pull_into(graph, slots.next(), handler(other), tag_of(i, kFirstRound + round), bytes);
        const Value to = round + 1 == rounds_count ? Value{target} : theirs;
        sum = other < node ? combine(graph, theirs, sum, to, bytes) : combine(graph, sum, theirs, to, bytes);
      }
      ready = sum.ready;
      // The partner of the last round need not have taken what lies where the result goes.
      if (in_place && !rounds.rests(node)) own_buffer.protect(graph, ready);
    }
    const uint32_t holder = handler(rounds.rests(node) ? partner : node);
    spread.segment(holder, i, tag_of(i, kResult), target, bytes, ready);
  }
}

}  // namespace offpath::ops
