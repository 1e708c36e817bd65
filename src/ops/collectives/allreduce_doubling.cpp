// SPDX-License-Identifier: BSD-3-Clause
// Allreduce by recursive doubling over the nodes: log2(nodes) rounds in which pairs exchange what they have combined so
// far, for short vectors. Both of a pair combine with the lower nodes on the left, so all get the same bits. Source: Thakur,
// Rabenseifner, Gropp (IJHPCA 2005).
#include "ops/collectives/expansions.hpp"
#include "ops/collectives/rounds.hpp"

namespace offpath::ops {

void expand_allreduce_doubling(const Expansion& expansion) {
  const auto& [collective, topology, tuning, graph] = expansion;
  const Block& send = collective.send.front();
  const bool in_place = place_of(send) == place_of(collective.recv.front());
  const uint32_t node = topology.node();
  const auto combine_all = [&](const RoundsOfSegment& segment, Value sum) {
    const auto& [rounds, slots, own, number, bytes, target] = segment;
    for (uint32_t round = 0; round < rounds.count(); ++round) {
      const uint32_t other = rounds.other(node, round), peer = expansion.handler(other, number);
      give(graph, sum, peer, tag_of(number, kFirstRound + round), bytes);
      const Value theirs = pull_into(graph, slots.next(), peer, tag_of(number, kFirstRound + round), bytes);
      const Value to = round + 1 == rounds.count() ? Value{target} : theirs;
      sum = other < node ? combine(graph, theirs, sum, to, bytes) : combine(graph, sum, theirs, to, bytes);
    }
    // The partner of the last round need not have taken what lies where the result goes.
    if (in_place) own.protect(graph, sum.ready);
    return sum.ready;
  };
  allreduce_in_rounds(expansion, {send.bytes, expansion.segment_bytes(send.bytes)}, Rounds(topology.nodes()).count(),
                      combine_all);
}

}  // namespace offpath::ops
