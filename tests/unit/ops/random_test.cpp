// SPDX-License-Identifier: BSD-3-Clause
// Every kind with every algorithm on random teams, against a plain reference. OFFPATH_TEST_SEED repeats one case;
// OFFPATH_TEST_ROUNDS asks for more.
#include "algorithms.hpp"
#include "team.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace offpath::testing {
namespace {

// Composition of maps x -> a x + b: associative, but the order matters.
uint64_t compose(uint64_t left, uint64_t right) {
  const auto a = static_cast<uint32_t>(left >> 32) * static_cast<uint32_t>(right >> 32);
  const auto b = static_cast<uint32_t>(left >> 32) * static_cast<uint32_t>(right) + static_cast<uint32_t>(left);
  return uint64_t{a} << 32 | b;
}

// Neither associative nor commutative: tells bracketings apart.
uint64_t mix(uint64_t left, uint64_t right) {
  const uint64_t mixed = (left * 0x9e3779b97f4a7c15 + right) * 0xbf58476d1ce4e5b9;
  return mixed ^ mixed >> 29;
}

enum class Placement { blocks, anywhere };

std::vector<uint64_t> random_nodes(std::mt19937_64& random, Placement placement) {
  const uint64_t nodes = 1 + random() % 7;
  std::vector<uint64_t> keys;
  for (uint64_t node = 0; node < nodes; ++node) {
    const uint64_t members = random() % 2 == 0 ? 1 : 1 + random() % 4;
    for (uint64_t i = 0; i < members; ++i) keys.push_back(100 + node);
  }
  if (placement == Placement::anywhere) std::shuffle(keys.begin(), keys.end(), random);
  return keys;
}

uint64_t random_bytes(std::mt19937_64& random) {
  constexpr uint64_t kAroundBounds[] = {0, 8, 56, 64, 72, 120, 128, 136, 512, 520};
  return random() % 2 == 0 ? kAroundBounds[random() % std::size(kAroundBounds)] : random() % 160 * 8;
}

// Do results combine members in exact rank order when nodes hold ranks in blocks?
bool keeps_rank_order(const Algorithm& algorithm, const Case& c) {
  if (algorithm.algorithm == OFFPATH_ALGORITHM_RING) return false;
  const bool rotates = algorithm.kind == OFFPATH_REDUCE && algorithm.algorithm == OFFPATH_ALGORITHM_BINOMIAL;
  return !rotates || c.node_keys[c.root] == c.node_keys[0];
}

Case random_case(const Algorithm& algorithm, std::mt19937_64& random) {
  Case c;
  const auto placement = random() % 2 == 0 ? Placement::blocks : Placement::anywhere;
  const bool scans = algorithm.kind == OFFPATH_SCAN || algorithm.kind == OFFPATH_EXSCAN;
  c.kind = algorithm.kind;
  c.algorithm = algorithm.algorithm;
  c.node_keys = random_nodes(random, placement);
  c.root = static_cast<uint32_t>(random() % c.node_keys.size());
  c.bytes = random_bytes(random);
  if (algorithm.kind == OFFPATH_REDUCE_SCATTER || algorithm.kind == OFFPATH_ALLGATHER) c.bytes = c.bytes / 32 * 8;
  if (algorithm.kind == OFFPATH_BCAST) c.bytes += random() % 8;
  c.in_place = random() % 2 == 0;
  c.layouts = random() % 2 == 0;
  c.equal = random() % 2 == 0;
  c.copy_own_blocks = random() % 3 != 0;
  c.tuning.window = 2 + static_cast<uint32_t>(random() % 4);
  c.tuning.scratch_bytes = random() % 2 == 0 ? 0 : 1 << 20;
  c.tuning.segments_max = random() % 3 == 0 ? 3 : 4096;
  c.tuning.pairwise_nodes = random() % 2 == 0 ? 1 : 16;
  const bool ordered = scans || (placement == Placement::blocks && keeps_rank_order(algorithm, c));
  c.combine = ordered ? compose : add;
  return c;
}

class EachAlgorithm : public ::testing::TestWithParam<Algorithm> {};
class EachReduction : public ::testing::TestWithParam<Algorithm> {};

TEST_P(EachAlgorithm, GivesWhatThePlainReferenceGives) {
  const char* seed_text = std::getenv("OFFPATH_TEST_SEED");
  const char* rounds_text = std::getenv("OFFPATH_TEST_ROUNDS");
  const uint64_t rounds = seed_text != nullptr     ? 1
                          : rounds_text != nullptr ? std::strtoull(rounds_text, nullptr, 0)
                                                   : 300;
  const uint64_t first = seed_text != nullptr ? std::strtoull(seed_text, nullptr, 0) : std::random_device{}();
  for (uint64_t seed = first; seed < first + rounds; ++seed) {
    std::mt19937_64 random(seed);
    const Case c = random_case(GetParam(), random);
    Team team(c, seed);
    ASSERT_EQ(team.run(seed), "") << "OFFPATH_TEST_SEED=" << seed << ": " << c.text();
  }
}

// The bracketing depends on the graph alone: same bits run to run and on all members.
TEST_P(EachReduction, BracketsAlikeInEveryRunAndOnAllMembers) {
  const uint64_t first = std::random_device{}();
  for (uint64_t seed = first; seed < first + 30; ++seed) {
    std::mt19937_64 random(seed);
    Case c = random_case(GetParam(), random);
    c.combine = mix;
    Team once(c, seed);
    Team again(c, seed);
    once.run(seed);  // the reference brackets from left to right, so what it says of the bytes means nothing here
    again.run(seed + 1);
    for (uint32_t member = 0; member < once.machines.size(); ++member) {
      ASSERT_EQ(once.machines[member].memory, again.machines[member].memory) << "seed " << seed << ": " << c.text();
      if (c.kind != OFFPATH_ALLREDUCE) continue;
      ASSERT_EQ(once.content(member, once.collectives[member].recv[0]), once.content(0, once.collectives[0].recv[0]))
          << "seed " << seed << ": " << c.text();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, EachAlgorithm, ::testing::ValuesIn(kAlgorithms), name_of);
INSTANTIATE_TEST_SUITE_P(Ops, EachReduction, ::testing::ValuesIn(reductions()), name_of);

}  // namespace
}  // namespace offpath::testing
