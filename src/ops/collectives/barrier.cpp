// SPDX-License-Identifier: BSD-3-Clause
// Barrier: a node's members tell their leader, leaders tell each other in rounds of doubling distance, a leader tells
// its node's members. Source: dissemination barrier, Hensgen, Finkel, Manber (IJPP 1988).
#include "ops/collectives/expansions.hpp"

namespace offpath::ops {
namespace {

constexpr uint32_t kArrive = 0;
constexpr uint32_t kRelease = 1;
constexpr uint32_t kFirstBarrierRound = 2;
constexpr graph::Place kNowhere;

// A step that is done when both are. An export waits for one step only.
uint32_t join(graph::Graph& graph, uint32_t first, uint32_t second) {
  if (first == graph::kNoStep) return second;
  const uint32_t both = graph.copy(kNowhere, kNowhere, 0);
  graph.order(first, both);
  graph.order(second, both);
  return both;
}

}  // namespace

void expand_barrier(const Expansion& expansion) {
  graph::Graph& graph = expansion.graph;
  const Topology& topology = expansion.topology;
  const uint32_t nodes = topology.nodes();
  if (!topology.leads()) {
    graph.offer(topology.leader(topology.node()), kArrive, kNowhere, 0);
    graph.pull(topology.leader(topology.node()), kRelease, kNowhere, 0);
    return;
  }
  // All pulls begin at once: a peer that has been asked before answers as soon as it can.
  uint32_t arrived = graph::kNoStep;
  for (const uint32_t member : topology.neighbours()) {
    if (member != topology.rank) arrived = join(graph, arrived, graph.pull(member, kArrive, kNowhere, 0));
  }
  uint32_t round = kFirstBarrierRound;
  for (uint64_t distance = 1; distance < nodes; distance *= 2, ++round) {
    graph.offer(topology.leader((topology.node() + distance) % nodes), round, kNowhere, 0, arrived);
    const uint32_t before = topology.leader((topology.node() + nodes - distance) % nodes);
    arrived = join(graph, arrived, graph.pull(before, round, kNowhere, 0));
  }
  for (const uint32_t member : topology.neighbours()) {
    if (member != topology.rank) graph.offer(member, kRelease, kNowhere, 0, arrived);
  }
}

}  // namespace offpath::ops
