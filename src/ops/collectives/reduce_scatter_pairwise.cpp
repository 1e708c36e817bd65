// SPDX-License-Identifier: BSD-3-Clause
// Reduce-scatter: each member fetches what every node contributes to its block, and combines it. Source: see
// owners.hpp.
#include "ops/collectives/expansions.hpp"
#include "ops/collectives/owners.hpp"

#include <algorithm>

namespace offpath::ops {
namespace {

// In place results lie over contributions: each waits for the steps and exports that need what it overwrites.
struct Result {
  const Piece* piece;
  uint32_t copy;  // step that writes it
};

void protect_contributions(graph::Graph& graph, std::vector<Buffer>& contributions, const std::vector<Result>& results,
                           uint64_t send_offset) {
  const auto begins_after = [](uint64_t at, const Buffer& buffer) { return at < buffer.place.offset; };
  for (const auto& [piece, copy] : results) {
    const uint64_t begin = send_offset + piece->part_offset;
    auto it = std::upper_bound(contributions.begin(), contributions.end(), begin, begins_after) - 1;
    for (; it != contributions.end() && it->place.offset < begin + piece->bytes; ++it) it->protect(graph, copy);
  }
}

}  // namespace

void expand_reduce_scatter_pairwise(const Expansion& expansion) {
  const auto& [collective, topology, tuning, graph] = expansion;
  const graph::Place send = place_of(collective.send.front());
  const graph::Place recv = place_of(collective.recv.front());
  const bool in_place = send == recv;
  std::vector<Part> parts;
  uint64_t offset = 0;
  for (uint32_t member = 0; member < topology.size(); ++member) {
    parts.push_back({offset, collective.counts_bytes[member], topology.node_of(member), member});
    offset += collective.counts_bytes[member];
  }
  const std::vector<Piece> pieces = cut_parts(expansion, parts, topology.rank);
  OwnerReduce reduce(expansion, longest_of(pieces));
  std::vector<Buffer> contributions(pieces.size());  // by number: without gaps, by ascending offset
  std::vector<Result> results;
  for (const Piece& piece : pieces) {
    Buffer& own = contributions[piece.number];
    own.place = send.plus(piece.offset);
    const graph::Place target = recv.plus(piece.part_offset);
    const Value sum = reduce.add(piece, Value::of(own), in_place ? nullptr : &target);
    if (!in_place || piece.owner != topology.rank) continue;
    results.push_back({&piece, graph.copy(sum.place, target, piece.bytes)});
    graph.order(sum.ready, results.back().copy);
    sum.buffer->readers.push_back(results.back().copy);
  }
  protect_contributions(graph, contributions, results, send.offset);
}

}  // namespace offpath::ops
