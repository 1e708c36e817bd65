// SPDX-License-Identifier: BSD-3-Clause
#include "ops/collectives/expansions.hpp"

#include <numeric>

namespace offpath::ops {
namespace {

// Below this length of the vector the number of hops counts, from it on the bytes on the wire.
constexpr uint64_t kLongBcastBytes = 64 << 10;
constexpr uint64_t kLongReduceBytes = 64 << 10;
constexpr uint64_t kLongAllreduceBytes = 32 << 10;
constexpr uint64_t kLongScanBytes = 64 << 10;
constexpr uint64_t kAlways = 0;
constexpr uint64_t kNever = UINT64_MAX;  // only when named

struct Algorithm {
  offpath_collective_kind_t kind;
  offpath_algorithm_t name;
  uint64_t default_from_bytes;
  void (*expand)(const Expansion&);
};

// Of a kind's rows the last one whose default_from_bytes is reached is its default.
constexpr Algorithm kAlgorithms[] = {
    {OFFPATH_EXCHANGE, OFFPATH_ALGORITHM_DIRECT, kAlways, expand_exchange},
    {OFFPATH_BARRIER, OFFPATH_ALGORITHM_DISSEMINATION, kAlways, expand_barrier},
    {OFFPATH_BCAST, OFFPATH_ALGORITHM_BINOMIAL, kAlways, expand_bcast_binomial},
    {OFFPATH_BCAST, OFFPATH_ALGORITHM_CHAIN, kLongBcastBytes, expand_bcast_chain},
    {OFFPATH_BCAST, OFFPATH_ALGORITHM_SCATTER_ALLGATHER, kNever, expand_bcast_scatter_allgather},
    {OFFPATH_ALLGATHER, OFFPATH_ALGORITHM_DIRECT, kAlways, expand_allgather_direct},
    {OFFPATH_ALLGATHER, OFFPATH_ALGORITHM_RING, kNever, expand_allgather_ring},
    {OFFPATH_REDUCE, OFFPATH_ALGORITHM_BINOMIAL, kAlways, expand_reduce_binomial},
    {OFFPATH_REDUCE, OFFPATH_ALGORITHM_RABENSEIFNER, kLongReduceBytes, expand_reduce_rabenseifner},
    {OFFPATH_ALLREDUCE, OFFPATH_ALGORITHM_DOUBLING, kAlways, expand_allreduce_doubling},
    {OFFPATH_ALLREDUCE, OFFPATH_ALGORITHM_RABENSEIFNER, kLongAllreduceBytes, expand_allreduce_rabenseifner},
    {OFFPATH_ALLREDUCE, OFFPATH_ALGORITHM_RING, kNever, expand_allreduce_ring},
    {OFFPATH_REDUCE_SCATTER, OFFPATH_ALGORITHM_PAIRWISE, kAlways, expand_reduce_scatter_pairwise},
    {OFFPATH_SCAN, OFFPATH_ALGORITHM_DOUBLING, kAlways, expand_scan_doubling},
    {OFFPATH_SCAN, OFFPATH_ALGORITHM_CHAIN, kLongScanBytes, expand_scan_chain},
    {OFFPATH_EXSCAN, OFFPATH_ALGORITHM_DOUBLING, kAlways, expand_scan_doubling},
    {OFFPATH_EXSCAN, OFFPATH_ALGORITHM_CHAIN, kLongScanBytes, expand_scan_chain},
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

bool reduces(offpath_collective_kind_t kind) { return kind >= OFFPATH_REDUCE && kind <= OFFPATH_EXSCAN; }

// A team of one: the result is the contribution.
void expand_alone(const Collective& collective, graph::Graph& graph) {
  const Block& send = collective.send.front();
  const Block& recv = collective.recv.front();
  if (collective.kind == OFFPATH_EXSCAN || send.bytes == 0 || send.place == recv.place) return;
  graph.copy(send.place, recv.place, send.bytes);
}

}  // namespace

offpath_algorithm_t resolve_algorithm(const Collective& collective, const Topology&) { return choose(collective).name; }

std::vector<DefaultAlgorithm> default_algorithms(offpath_collective_kind_t kind) {
  std::vector<DefaultAlgorithm> out;
  for (const Algorithm& row : kAlgorithms) {
    if (row.kind == kind && row.default_from_bytes != kNever) out.push_back({row.default_from_bytes, row.name});
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
