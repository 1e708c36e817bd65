// SPDX-License-Identifier: BSD-3-Clause
#include "ops/collectives/expansions.hpp"

#include <numeric>

namespace offpath::ops {
namespace {

constexpr uint64_t always = 0;
constexpr uint64_t never = UINT64_MAX;

struct Algorithm {
  offpath_collective_kind_t kind;
  offpath_algorithm_t name;
  uint64_t default_from_bytes;
  void (*expand)(const Expansion&);
};

constexpr Algorithm kAlgorithms[] = {
#define OFFPATH_EXPANSION(kind, NAME, from, function) \
  {OFFPATH_##kind, OFFPATH_ALGORITHM_##NAME, from, expand_##function},
#include <offpath/words/algorithms.def>
};

uint64_t side_bytes(const std::vector<Block>& blocks) {
  return std::accumulate(blocks.begin(), blocks.end(), uint64_t{0},
                         [](uint64_t sum, const Block& block) { return sum + block.bytes; });
}

// The row of the named algorithm, else of the default.
const Algorithm& choose(const Collective& collective) {
  const uint64_t bytes = std::max(side_bytes(collective.send), side_bytes(collective.recv));
  const Algorithm* chosen = nullptr;
  for (const Algorithm& row : kAlgorithms) {
    if (row.kind != collective.kind) continue;
    if (row.name == collective.algorithm) return row;
    if (bytes >= row.default_from_bytes) chosen = &row;
  }
  return *chosen;
}

bool reduces(offpath_collective_kind_t kind) { return kind >= OFFPATH_REDUCE; }

// A team of one: the result is the contribution.
void expand_alone(const Collective& collective, graph::Graph& graph) {
  const Block& send = collective.send.front();
  const Block& recv = collective.recv.front();
  if (collective.kind == OFFPATH_EXSCAN || send.bytes == 0 || place_of(send) == place_of(recv)) return;
  graph.copy(place_of(send), place_of(recv), send.bytes);
}

}  // namespace

offpath_algorithm_t resolve_algorithm(const Collective& collective, const Topology&) { return choose(collective).name; }

std::vector<DefaultAlgorithm> default_algorithms(offpath_collective_kind_t kind) {
  std::vector<DefaultAlgorithm> out;
  for (const Algorithm& row : kAlgorithms) {
    if (row.kind == kind && row.default_from_bytes != never) out.push_back({row.default_from_bytes, row.name});
  }
  return out;
}

graph::Graph expand(Collective collective, const Topology& topology, const Tuning& tuning) {
  graph::Graph graph;
  graph.reduction = collective.reduction;
  graph.layouts = std::move(collective.layouts);
  if (topology.size() == 1 && reduces(collective.kind)) {
    expand_alone(collective, graph);
  } else {
    choose(collective).expand({collective, topology, tuning, graph});
  }
  return graph;
}

}  // namespace offpath::ops
