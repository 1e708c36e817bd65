// SPDX-License-Identifier: BSD-3-Clause
#include "multicast/arming.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

namespace offpath::multicast {
namespace {

constexpr int32_t kMismatch = -9;

// All words go up the tree in any order; the root's answer is what all of them say together.
Word at_root(const std::vector<Word>& words, uint64_t seed) {
  const auto nodes = static_cast<uint32_t>(words.size());
  std::vector<Arming> machines;
  for (uint32_t node = 0; node < nodes; ++node) machines.emplace_back(node, nodes, kMismatch);
  std::vector<uint32_t> order(nodes);
  for (uint32_t node = 0; node < nodes; ++node) order[node] = node;
  std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
  std::optional<Word> out;
  for (const uint32_t armed : order) {
    EXPECT_FALSE(out) << "before all were armed";
    EXPECT_TRUE(machines[armed].arm(armed, words[armed]));
    EXPECT_FALSE(machines[armed].arm(armed, words[armed])) << "twice";
    for (uint32_t node = armed;;) {
      const auto word = machines[node].take();
      if (!word) break;
      EXPECT_TRUE(machines[node].said() && !machines[node].take());
      if (machines[node].is_root()) out = word;
      if (machines[node].is_root()) break;
      const uint32_t parent = machines[node].parent();
      EXPECT_FALSE(machines[parent].has(node));
      EXPECT_TRUE(machines[parent].arm(node, *word));
      EXPECT_TRUE(machines[parent].has(node));
      node = parent;
    }
  }
  EXPECT_TRUE(out.has_value());
  return out.value_or(Word{});
}

TEST(Arming, TheRootHearsWhatAllCan) {
  for (uint32_t nodes = 1; nodes < 40; ++nodes) {
    std::vector<Word> words(nodes, Word{.chunk_bytes = 8000, .digest = 7, .rate = 500, .lost = 1, .of = 10});
    words[nodes / 2].chunk_bytes = 1400;
    words[nodes - 1].rate = 0;  // unknown
    words[nodes / 3].rate = 300;
    for (uint32_t node = 0; node < nodes; ++node) words[node].seals = node == nodes / 2 ? 1 : 3;
    for (uint32_t node = 0; node < nodes; ++node) words[node].codecs = node == nodes / 3 ? 6 : 7;
    const Word all = at_root(words, nodes);

    EXPECT_EQ(all, (Word{0, 1400, 7, 300, nodes, 10 * nodes, 1, 6})) << nodes;
  }
}

TEST(Arming, OneThatCannotSpeaksForAll) {
  for (uint32_t who = 0; who < 9; ++who) {
    std::vector<Word> words(9, Word{.chunk_bytes = 100, .digest = 7, .lost = UINT32_MAX, .of = UINT32_MAX});
    EXPECT_EQ(at_root(words, who).of, UINT32_MAX) << "and not a small number";
    words[who].chunk_bytes = 0;
    EXPECT_EQ(at_root(words, who).chunk_bytes, 0U);
    words[who].digest = 8;
    EXPECT_EQ(at_root(words, who).status, kMismatch);
    words[who].status = -3;
    EXPECT_EQ(at_root(words, who).status, -3);
  }
}

TEST(Arming, EachRoundIsWaitedForAnew) {
  Arming node(0, 2, kMismatch);
  EXPECT_FALSE(node.arm(3, {})) << "a node that there is not";
  EXPECT_TRUE(node.arm(1, {}) && !node.take());
  EXPECT_TRUE(node.arm(0, {}) && node.take());
  node.next_round();
  EXPECT_TRUE(!node.has(1) && !node.said());
  EXPECT_TRUE(node.arm(0, {}) && !node.take());
  EXPECT_TRUE(node.arm(1, {}) && node.take());
}

}  // namespace
}  // namespace offpath::multicast
