// SPDX-License-Identifier: BSD-3-Clause
// Scan and exscan in log2(members) rounds: in round k each member adds what the member 2^k before it has combined so
// far, for short vectors. Source: Hillis, Steele (CACM 1986).
#include "ops/collectives/expansions.hpp"
#include "ops/collectives/fold.hpp"

#include <bit>

namespace offpath::ops {

void expand_scan_doubling(const Expansion& expansion) {
  const auto& [collective, topology, tuning, graph] = expansion;
  const bool exclusive = collective.kind == OFFPATH_EXSCAN;
  const Block& send = collective.send.front();
  const graph::Place recv = place_of(collective.recv.front());
  const bool in_place = place_of(send) == recv;
  const uint32_t rank = topology.rank;
  const Segments segments{send.bytes, expansion.segment_bytes(send.bytes)};
  const auto pulls_count = static_cast<uint32_t>(std::bit_width(rank));  // rounds with a member that far before
  Slots slots(expansion, (exclusive ? 2 : 1) * pulls_count, std::min(segments.step_bytes, send.bytes));

  for (uint32_t i = 0; i < segments.count(); ++i) {
    const uint64_t bytes = segments.length(i);
    const Value target{recv.plus(segments.offset(i))};
    Buffer own_buffer{place_of(send).plus(segments.offset(i)), false, {}, {}};
    Value sum = Value::of(own_buffer);  // of the last 2^round members up to this one
    Value before;                       // exscan: the same without this one
    for (uint32_t round = 0; uint64_t{1} << round < topology.size(); ++round) {
      const uint64_t distance = uint64_t{1} << round;
      if (rank + distance < topology.size()) {
        give(graph, sum, static_cast<uint32_t>(rank + distance), tag_of(i, round), bytes);
      }
      if (round >= pulls_count) continue;
      const bool last = round + 1 == pulls_count;
      const Value further =
          pull_into(graph, slots.next(), static_cast<uint32_t>(rank - distance), tag_of(i, round), bytes);
      if (!exclusive) {
        sum = combine(graph, further, sum, last ? target : further, bytes);
        continue;
      }
      if (rank + 2 * distance < topology.size()) {
        sum = combine(graph, further, sum, Value::of(slots.next()), bytes);
      }
      before = before.buffer == nullptr ? further : combine(graph, further, before, before, bytes);
    }
    if (rank == 0) {
      if (!exclusive && !in_place) graph.copy(own_buffer.place, target.place, bytes);
      continue;
    }
    uint32_t writes = sum.ready;
    if (exclusive) {
      writes = graph.copy(before.place, target.place, bytes);
      graph.order(before.ready, writes);
      before.buffer->readers.push_back(writes);
    }
    if (in_place) own_buffer.protect(graph, writes);
  }
}

}  // namespace offpath::ops
