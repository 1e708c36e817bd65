// SPDX-License-Identifier: BSD-3-Clause
// An exchange of random blocks between few members of a team, with its memory.
#pragma once

#include "cluster.hpp"

#include <functional>

namespace offpath::testing {

// Blocks between some members of a team. Who has no part in it does not post it.
struct Sparse {
  struct Block {
    uint32_t from, to;
    size_t source, target, bytes;
  };
  Sparse(uint32_t size, std::mt19937_64& random, const std::function<size_t()>& draw_bytes) : memory(size) {
    const uint64_t rarity = 1 + random() % 6;
    std::vector<size_t> ends(size);
    for (uint32_t pair = 0; pair < size * size; ++pair) {
      if (random() % rarity != 0) continue;
      const uint32_t from = pair / size, to = pair % size;
      const size_t bytes = draw_bytes();
      blocks.push_back({from, to, ends[from], 0, bytes});
      blocks.back().target = ends[from] += bytes;
      if (from != to) blocks.back().target = ends[to];
      ends[to] += bytes;
    }
    for (uint32_t member = 0; member < size; ++member) memory[member].resize(ends[member]);
    for (auto& bytes : memory)
      std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<uint8_t>(random()); });
    expected = memory;
    for (const Block& block : blocks) {
      std::copy_n(memory[block.from].data() + block.source, block.bytes, expected[block.to].data() + block.target);
    }
  }
  bool has_part(uint32_t member) const {
    return std::any_of(blocks.begin(), blocks.end(),
                       [&](const Block& b) { return b.from == member || b.to == member; });
  }
  graph::Graph graph(uint32_t member) const {
    graph::Graph made;
    for (const Block& block : blocks) {
      const graph::Place source = at(memory[block.from], block.source), target = at(memory[block.to], block.target);
      if (block.from == member && block.to == member) made.copy(source, target, block.bytes);
      if (block.from == member && block.to != member) made.offer(block.to, 0, source, block.bytes);
      if (block.to == member && block.from != member) made.pull(block.from, 0, target, block.bytes);
    }
    return made;
  }
  std::vector<Block> blocks;
  std::vector<std::vector<uint8_t>> memory, expected;  // by member
};

}  // namespace offpath::testing
