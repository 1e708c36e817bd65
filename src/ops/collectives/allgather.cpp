// SPDX-License-Identifier: BSD-3-Clause
#include "ops/collectives/allgather.hpp"

namespace offpath::ops {

void gather_blocks(const Expansion& expansion, TreeShape shape, bool deep) {
  const auto& [collective, topology, tuning, graph] = expansion;
  const Block& own = collective.send.front();
  uint64_t total = 0;
  for (const Block& block : collective.recv) total += block.bytes;
  std::vector<Segments> segments;
  std::vector<uint32_t> first{0};
  for (const Block& block : collective.recv) {
    segments.push_back(cut_to_spread(expansion, block.bytes, total, deep));
    first.push_back(first.back() + segments.back().count());
  }
  // The own block first: only exports. Then from the nearest on, which is the order in which a ring brings them.
  for (uint32_t i = 0; i < topology.size(); ++i) {
    const uint32_t owner = (topology.rank + topology.size() - i) % topology.size();
    const graph::Place place = owner == topology.rank ? place_of(own) : place_of(collective.recv[owner]);
    spread_block(expansion, shape(topology.node_of(owner), topology.node(), topology.nodes()), segments[owner], owner,
                 place, first[owner]);
  }
  const graph::Place target = place_of(collective.recv[topology.rank]);
  if (collective.own_blocks == collective::OwnBlocks::by_service && own.bytes > 0 && place_of(own) != target) {
    graph.copy(place_of(own), target, own.bytes);
  }
}

}  // namespace offpath::ops
