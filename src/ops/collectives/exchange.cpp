// SPDX-License-Identifier: BSD-3-Clause
// Exchange: every block straight to where it belongs. Peers are asked in the order rank + 1, rank + 2, ..., so that not
// all members ask the same one first. Source: pairwise exchange as in Thakur, Rabenseifner, Gropp (IJHPCA 2005), with
// the receiver asking.
#include "ops/collectives/expansions.hpp"

#include <algorithm>
#include <tuple>

namespace offpath::ops {
namespace {

// The blocks that move something, own ones first.
std::vector<Block> by_distance(const std::vector<Block>& blocks, const Topology& topology) {
  std::vector<Block> sorted;
  std::copy_if(blocks.begin(), blocks.end(), std::back_inserter(sorted), [](const Block& b) { return b.bytes > 0; });
  const auto distance = [&](const Block& b) { return (b.peer + topology.size() - topology.rank) % topology.size(); };
  std::sort(sorted.begin(), sorted.end(), [&](const Block& a, const Block& b) {
    return std::tuple(distance(a), a.tag) < std::tuple(distance(b), b.tag);
  });
  return sorted;
}

}  // namespace

void expand_exchange(const Expansion& expansion) {
  graph::Graph& graph = expansion.graph;
  const uint32_t rank = expansion.topology.rank;
  const std::vector<Block> send = by_distance(expansion.collective.send, expansion.topology);
  const std::vector<Block> recv = by_distance(expansion.collective.recv, expansion.topology);
  for (const Block& to : recv) {
    if (to.peer != rank) graph.pull(to.peer, to.tag, place_of(to), to.bytes);
  }
  auto to = recv.begin();
  for (const Block& from : send) {
    if (from.peer != rank) {
      graph.offer(from.peer, from.tag, place_of(from), from.bytes);
    } else if (expansion.collective.own_blocks == collective::OwnBlocks::by_service) {
      while (to->tag != from.tag) ++to;  // check() has seen that there is one
      graph.copy(place_of(from), place_of(*to), from.bytes);
    }
  }
}

}  // namespace offpath::ops
