// SPDX-License-Identifier: BSD-3-Clause
#include "ops/collectives/owners.hpp"

namespace offpath::ops {

std::vector<Part> parts_of_nodes(const Expansion& expansion, uint64_t bytes) {
  const uint32_t nodes = expansion.topology.nodes();
  const uint64_t share = round_up((bytes + nodes - 1) / nodes, kCutAlignment);
  std::vector<Part> parts;
  for (uint32_t node = 0; node < nodes; ++node) {
    const uint64_t offset = std::min(bytes, node * share);
    parts.push_back({offset, std::min(share, bytes - offset), node, UINT32_MAX});
  }
  return parts;
}

std::vector<Piece> cut_parts(const Expansion& expansion, const std::vector<Part>& parts, uint32_t first,
                             bool backwards) {
  const auto count = static_cast<uint32_t>(parts.size());
  uint64_t total = 0;
  for (const Part& part : parts) total += part.bytes;
  const uint64_t step = expansion.segment_bytes(total);
  std::vector<uint32_t> numbers;  // of each part's first piece
  uint32_t pieces_count = 0;
  uint32_t rounds = 0;
  for (const Part& part : parts) {
    numbers.push_back(pieces_count);
    const uint32_t pieces = Segments{part.bytes, step}.count();
    pieces_count += pieces;
    rounds = std::max(rounds, pieces);
  }
  std::vector<Piece> pieces;
  pieces.reserve(pieces_count);
  for (uint32_t round = 0; round < rounds; ++round) {
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t index = (first + (backwards ? count - i : i)) % count;
      const Part& part = parts[index];
      const Segments segments{part.bytes, step};
      if (round >= segments.count()) continue;
      const uint64_t key = uint64_t{index} + round;
      const uint32_t owner = part.member != UINT32_MAX ? part.member : expansion.handler(part.node, key);
      const uint64_t offset = segments.offset(round);
      pieces.push_back(
          {index, numbers[index] + round, key, owner, offset, part.offset + offset, segments.length(round)});
    }
  }
  return pieces;
}

void add_neighbours(const Expansion& expansion, uint32_t tag, std::vector<Contribution>& contributions) {
  for (const uint32_t member : expansion.topology.neighbours()) contributions.push_back({member, tag});
}

OwnerReduce::OwnerReduce(const Expansion& expansion, uint64_t longest_bytes)
    : expansion_(expansion),
      owned_(expansion,
             expansion.topology.nodes() - 1 + static_cast<uint32_t>(expansion.topology.neighbours().size()) - 1,
             longest_bytes),
      handled_(expansion, static_cast<uint32_t>(expansion.topology.neighbours().size()) - 1, longest_bytes) {}

Value OwnerReduce::add(const Piece& piece, const Value& own, const graph::Place* target) {
  const Topology& topology = expansion_.topology;
  const uint32_t home = topology.node_of(piece.owner);
  const bool at_home = topology.node() == home;
  const uint32_t handler = at_home ? piece.owner : expansion_.handler(topology.node(), piece.key);
  if (topology.rank != handler) {
    give(expansion_.graph, own, handler, tag_of(piece.number, kToHandler), piece.bytes);
    return {};
  }
  std::vector<Contribution> contributions;
  if (!at_home) {
    add_neighbours(expansion_, tag_of(piece.number, kToHandler), contributions);
    const Value sum = fold(expansion_, contributions, own, handled_, nullptr, piece.bytes);
    give(expansion_.graph, sum, piece.owner, tag_of(piece.number, kToOwner), piece.bytes);
    return {};
  }
  for (uint32_t node = 0; node < topology.nodes(); ++node) {
    if (node == home) {
      add_neighbours(expansion_, tag_of(piece.number, kToHandler), contributions);
    } else {
      contributions.push_back({expansion_.handler(node, piece.key), tag_of(piece.number, kToOwner)});
    }
  }
  return fold(expansion_, contributions, own, owned_, target, piece.bytes);
}

uint64_t longest_of(const std::vector<Piece>& pieces) {
  uint64_t longest = 0;
  for (const Piece& piece : pieces) longest = std::max(longest, piece.bytes);
  return longest;
}

}  // namespace offpath::ops
