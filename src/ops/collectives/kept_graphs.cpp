// SPDX-License-Identifier: BSD-3-Clause
#include "ops/collectives/kept_graphs.hpp"

#include <algorithm>
#include <cstring>

namespace offpath::ops {
namespace {

bool is_short(const Collective& collective) {
  const size_t parts = collective.send.size() + collective.recv.size() + collective.counts_bytes.size();
  return parts + memory::count_ranges(collective.layouts) <= KeptGraphs::kMostParts;
}

// The same for two means only that one is kept too soon.
uint64_t digest_of(const Collective& collective) {
  uint64_t digest = 0xcbf29ce484222325;
  const auto add = [&](uint64_t value) { digest = (digest ^ value) * 0x100000001b3; };
  add(collective.kind);
  add(collective.root);
  for (const std::vector<Block>* side : {&collective.send, &collective.recv}) {
    add(side->size());
    if (side->empty()) continue;
    for (const Block* block : {&side->front(), &side->back()}) add(block->address), add(block->bytes);
  }
  return digest;
}

}  // namespace

base::Result<graph::Graph> KeptGraphs::expand(std::span<const uint8_t> record, collective::OwnBlocks own,
                                              const Topology& topology) {
  for (const Kept& kept : kept_) {
    if (kept.own != own || kept.record.size() > record.size()) continue;
    if (memcmp(kept.record.data(), record.data(), kept.record.size()) == 0) return graph::Graph(kept.graph);
  }
  auto collective = collective::decode(record);
  if (!collective.ok()) return collective.status();
  if (const base::Status status = check(collective.value(), topology.rank, topology.size()); !status.ok())
    return status;
  const uint64_t digest = digest_of(collective.value());
  const bool seen = std::find(seen_.begin(), seen_.end(), digest) != seen_.end();
  const bool again = seen && is_short(collective.value());
  std::vector<uint8_t> bytes;  // as they were read
  if (again) bytes = collective::encode(collective.value());
  if (!seen) seen_[next_seen_++ % kMost] = digest;
  collective->own_blocks = own;
  collective->algorithm = resolve_algorithm(collective.value(), topology);
  graph::Graph graph = ops::expand(std::move(collective.value()), topology);
  if (!again || graph.steps.size() + graph.exports.size() > kMostParts) return graph;
  graph.seal();
  Kept kept{std::move(bytes), own, graph};
  if (kept_.size() < kMost) {
    kept_.push_back(std::move(kept));
  } else {
    kept_[next_kept_++ % kMost] = std::move(kept);
  }
  return graph;
}

}  // namespace offpath::ops
