// SPDX-License-Identifier: BSD-3-Clause
// Scan and exscan along the chain of members in rank order: each adds its contribution to the prefix that it gets and
// passes it on, segment by segment, so for long vectors all members work at once. Source: the pipelined linear scan,
// e.g. Sanders, Traeff (EuroPVM/MPI 2006).
#include "ops/collectives/expansions.hpp"
#include "ops/collectives/fold.hpp"

namespace offpath::ops {

void expand_scan_chain(const Expansion& expansion) {
  const auto& [collective, topology, tuning, graph] = expansion;
  const bool exclusive = collective.kind == OFFPATH_EXSCAN;
  const Block& send = collective.send.front();
  const graph::Place recv = place_of(collective.recv.front());
  const bool in_place = place_of(send) == recv;
  const uint32_t next = topology.rank + 1;
  const bool last = next == topology.size();
  const Segments segments{send.bytes, expansion.segment_bytes(send.bytes)};
  Slots slots(expansion, exclusive ? 2 : 1, std::min(segments.step_bytes, send.bytes));
  PullWindow results(tuning.window);

  for (uint32_t i = 0; i < segments.count(); ++i) {
    const uint64_t bytes = segments.length(i);
    const uint32_t tag = tag_of(i, 0);
    const Value own{place_of(send).plus(segments.offset(i))};
    const Value target{recv.plus(segments.offset(i))};
    if (topology.rank == 0) {
      give(graph, own, next, tag, bytes);
      if (!exclusive && !in_place) graph.copy(own.place, target.place, bytes);
    } else if (!exclusive) {
      const Value prefix = pull_into(graph, slots.next(), topology.rank - 1, tag, bytes);
      const Value sum = combine(graph, prefix, own, target, bytes);
      if (!last) give(graph, sum, next, tag, bytes);
    } else if (last) {
      results.add(graph, graph.pull(topology.rank - 1, tag, target.place, bytes));
    } else {
      const Value prefix = pull_into(graph, slots.next(), topology.rank - 1, tag, bytes);
      const Value sum = combine(graph, prefix, own, Value::of(slots.next()), bytes);
      give(graph, sum, next, tag, bytes);
      const uint32_t copy = graph.copy(prefix.place, target.place, bytes);
      graph.order(in_place ? sum.ready : prefix.ready, copy);
      prefix.buffer->readers.push_back(copy);
    }
  }
}

}  // namespace offpath::ops
