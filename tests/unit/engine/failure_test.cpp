// SPDX-License-Identifier: BSD-3-Clause
// When a step fails, what depends on it fails with the same status on every member, what does not goes on, and nobody
// waits for ever or gets garbage.
#include "cluster.hpp"
#include "exchange.hpp"

#include <numeric>

namespace offpath::testing {
namespace {

using graph::client_place;
using graph::Graph;
using graph::kNoStep;
using graph::Place;
using graph::scratch_place;
using Bytes = std::vector<uint8_t>;

class Failure : public ::testing::TestWithParam<uint32_t> {
 protected:
  void post(uint32_t rank, Graph graph) {
    steps[rank] = static_cast<uint32_t>(graph.steps.size());
    exports[rank] = static_cast<uint32_t>(graph.exports.size());
    cluster.engine_of(rank).post(team[rank], 0, std::move(graph), 0);
  }
  // All end, and the observer was told of every step and export.
  void expect(const std::vector<offpath_status_t>& statuses) {
    cluster.settle();
    for (uint32_t rank = 0; rank < statuses.size(); ++rank) {
      EXPECT_EQ(cluster.outcome(rank, 0), statuses[rank]) << "rank " << rank;
      EXPECT_EQ(cluster.told(rank, 0).steps, steps[rank]) << "rank " << rank;
      EXPECT_EQ(cluster.told(rank, 0).served, exports[rank]) << "rank " << rank;
    }
  }
  std::shared_ptr<FarMemory> memory = std::make_shared<FarMemory>();
  Cluster cluster{GetParam(), 4, 41, Cluster::small_chunks(), memory};
  std::vector<engine::TeamHandle> team = cluster.make_team({0, 1, 2, 3}, 1);
  std::map<uint32_t, uint32_t> steps, exports;
  Bytes good = Bytes(200, 7), torn = Bytes(200, 8);
  std::vector<Bytes> to = std::vector<Bytes>(4, Bytes(200, 0xEE));
};
INSTANTIATE_TEST_SUITE_P(Nodes, Failure, ::testing::Values(1, 2, 4));

TEST_P(Failure, WhatDependsOnAStepFailsAndTheRestGoesOn) {
  memory->tear(torn.data() + 150, 1);
  Graph zero;
  const Place scratch = scratch_place(zero.reserve_scratch(200));
  const uint32_t broken = zero.copy(at(torn), scratch, 200);
  zero.offer(1, 0, scratch, 200, broken);
  zero.offer(2, 0, at(good), 200);
  zero.pull(1, 1, at(to[0]), 200);
  Graph one, two;
  one.pull(0, 0, at(to[1]), 200);
  one.offer(0, 1, at(good), 200);
  two.pull(0, 0, at(to[2]), 200);
  post(0, std::move(zero)), post(1, std::move(one)), post(2, std::move(two));
  expect({OFFPATH_ERR_MEMORY_FAULT, OFFPATH_ERR_MEMORY_FAULT, OFFPATH_OK});
  EXPECT_EQ(to[0], good);
  EXPECT_EQ(to[1], Bytes(200, 0xEE)) << "garbage was handed out";
  EXPECT_EQ(to[2], good);
}

// 0 -> 1 -> 2 -> 3, each adds its own; the last one also has something that does not depend on it.
TEST_P(Failure, TravelsDownAPipeline) {
  memory->tear(torn.data(), 1);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    Graph graph;
    graph.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_U8};
    const Place sum = scratch_place(graph.reserve_scratch(200));
    uint32_t pull = kNoStep;
    if (rank > 0) pull = graph.pull(rank - 1, 0, sum, 200);
    const uint32_t add = graph.reduce(sum, rank == 0 ? at(torn) : at(good), sum, 200);
    graph.order(pull, add);
    if (rank < 3) graph.offer(rank + 1, 0, sum, 200, add);
    if (rank == 3) graph.order(add, graph.copy(sum, at(to[3]), 200));
    if (rank == 3) graph.copy(at(good), at(to[0]), 200);
    post(rank, std::move(graph));
  }
  expect(std::vector<offpath_status_t>(4, OFFPATH_ERR_MEMORY_FAULT));
  EXPECT_EQ(to[3], Bytes(200, 0xEE));
  EXPECT_EQ(to[0], good);
}

TEST_P(Failure, APullAfterAFailedStepTakesNothingAndItsPeerEnds) {
  memory->tear(torn.data(), 200);
  Graph zero, one;
  const uint32_t broken = zero.copy(at(torn), at(to[2]), 200);
  const uint32_t pull = zero.pull(1, 0, at(to[0]), 200);
  zero.order(broken, pull);
  zero.offer(1, 1, at(to[0]), 200, pull);
  one.offer(0, 0, at(good), 200);
  post(0, std::move(zero)), post(1, std::move(one));
  cluster.settle();
  EXPECT_EQ(cluster.outcome(1, 0), OFFPATH_OK) << "its export was refused by nobody";
  EXPECT_EQ(cluster.outcome(0, 0), std::nullopt) << "its export has not been asked for";
  EXPECT_EQ(to[0], Bytes(200, 0xEE));
}

TEST_P(Failure, NoMemoryForScratch) {
  Graph zero, one, two;
  zero.reserve_scratch(uint64_t{1} << 47);
  const uint32_t fill = zero.copy(at(good), scratch_place(0), 200);
  zero.offer(1, 0, scratch_place(0), 200, fill);
  zero.offer(2, 0, scratch_place(0), 200);
  const uint32_t pull = zero.pull(1, 1, scratch_place(64), 200);
  zero.order(pull, zero.copy(scratch_place(64), at(to[0]), 200));
  one.pull(0, 0, at(to[1]), 200);
  one.offer(0, 1, at(good), 200);
  two.pull(0, 0, at(to[2]), 200);
  post(0, std::move(zero)), post(1, std::move(one)), post(2, std::move(two));
  expect({OFFPATH_ERR_NO_MEMORY, OFFPATH_ERR_NO_MEMORY, OFFPATH_ERR_NO_MEMORY});
  for (const Bytes& buffer : to) EXPECT_EQ(buffer, Bytes(200, 0xEE));
}

TEST_P(Failure, ArgumentsThatMakeNoSense) {
  struct Case {
    const char* what;
    std::function<void(Graph&)> make;
  };
  const Case cases[] = {
      {"operator",
       [&](Graph& g) {
         g.reduction = {OFFPATH_OP_BAND, OFFPATH_ELEMENT_F64};
       }},
      {"none", [](Graph&) {}},
      {"bytes",
       [&](Graph& g) {
         g.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_CLONG};
       }},
      {"wild",
       [&](Graph& g) {
         g.reduction = {static_cast<offpath_operator_t>(15), OFFPATH_ELEMENT_I32};
       }},
  };
  uint64_t sequence = 0;
  for (const Case& one : cases) {
    Graph graph;
    one.make(graph);
    graph.reduce(at(good), at(torn), at(to[0]), 200);
    cluster.engine_of(0).post(team[0], sequence, std::move(graph), sequence);
    cluster.settle();
    EXPECT_EQ(cluster.outcome(0, sequence++), OFFPATH_ERR_ARGUMENT) << one.what;
  }
  for (const memory::Layout& layout : {memory::Layout{}, memory::Layout{8, 8, {{0, 4}}}}) {
    for (const uint32_t index : {0u, 1u, 1000u, graph::kScratch - 1}) {
      Graph graph;
      graph.layouts.push_back(layout);
      graph.copy({address_of(good.data()), 0, index}, at(to[0]), 200);
      cluster.engine_of(0).post(team[0], sequence, std::move(graph), sequence);
      cluster.settle();
      EXPECT_EQ(cluster.outcome(0, sequence++), OFFPATH_ERR_ARGUMENT) << index;
    }
  }
  EXPECT_EQ(to[0], Bytes(200, 0xEE));
}

TEST_P(Failure, ScratchHasBounds) {
  Graph graph;
  graph.reserve_scratch(200);
  graph.copy(at(good), scratch_place(uint64_t{1} << 30), 200);
  graph.copy(scratch_place(UINT64_MAX - 100), at(to[0]), 200);
  post(0, std::move(graph));
  expect({OFFPATH_ERR_MEMORY_FAULT});
}

// An export that its peer cannot take is refused only when its step is done: what waits for it reuses its memory.
TEST_P(Failure, ARefusalDoesNotLetTheWindowGoEarly) {
  Graph zero, one, two;
  const Place window = scratch_place(zero.reserve_scratch(200));
  const uint32_t fill = zero.pull(2, 0, window, 200);
  const uint32_t too_much = zero.offer(1, 0, window, 200, fill);
  const uint32_t refill = zero.copy(at(torn), window, 200);
  zero.order_after_taken(too_much, refill);
  zero.order(refill, zero.copy(window, at(to[0]), 200));
  one.pull(0, 0, at(to[1]), 100);
  two.offer(0, 0, at(good), 200);
  post(0, std::move(zero)), post(1, std::move(one));
  cluster.settle();
  EXPECT_EQ(to[0], Bytes(200, 0xEE)) << "the window was reused although its first content is still to come";
  post(2, std::move(two));
  expect({OFFPATH_OK, OFFPATH_ERR_TRUNCATED, OFFPATH_OK});
  EXPECT_EQ(to[0], torn);
}

// A sender that cannot read its own block, a receiver that cannot write its own.
TEST_P(Failure, FaultsInABlockItself) {
  memory->tear(torn.data() + 199, 1);
  Graph zero, one, two;
  zero.offer(1, 0, at(torn), 200);
  const uint32_t pull = one.pull(0, 0, at(to[1]), 200);
  one.offer(2, 0, at(to[1]), 200, pull);
  two.pull(1, 0, at(to[2]), 200);
  post(0, std::move(zero)), post(1, std::move(one)), post(2, std::move(two));
  expect({OFFPATH_ERR_MEMORY_FAULT, OFFPATH_ERR_MEMORY_FAULT, OFFPATH_ERR_MEMORY_FAULT});
  EXPECT_EQ(to[2], Bytes(200, 0xEE));
}

TEST_P(Failure, AReceiverThatCannotWriteFailsAlone) {
  memory->tear(to[1].data() + 100, 1);
  Graph zero, one;
  zero.offer(1, 0, at(good), 200);
  one.pull(0, 0, at(to[1]), 200);
  post(0, std::move(zero)), post(1, std::move(one));
  expect({OFFPATH_OK, OFFPATH_ERR_MEMORY_FAULT});
}

// Rings of segments through small windows with a hole anywhere: all end, and who ends well has the right bytes.
void run_random_ring(uint64_t seed, bool lose) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto ranks = static_cast<uint32_t>(2 + random() % 5);
  const auto nodes = static_cast<uint32_t>(1 + random() % ranks);
  const uint32_t segments = 6, bytes = 100;
  engine::Config config = Cluster::small_chunks();
  if (random() % 2 == 0) config.chunk_bytes = 400;
  const auto memory = std::make_shared<FarMemory>();
  Cluster cluster(nodes, ranks, seed, config, memory);
  std::vector<uint32_t> members(ranks);
  std::iota(members.begin(), members.end(), 0);
  const auto team = cluster.make_team(members, 1);
  Bytes from(segments * bytes);
  for (uint8_t& byte : from) byte = static_cast<uint8_t>(random());
  std::vector<Bytes> to(ranks, Bytes(from.size(), 0xEE));
  const auto torn = static_cast<uint32_t>(random() % (ranks + 1));  // ranks: nobody
  if (!lose && torn == 0) memory->tear(&from[random() % from.size()], 1);
  if (!lose && torn > 0 && torn < ranks) memory->tear(&to[torn][random() % from.size()], 1);
  // Rank 0 sends, every one passes on what it got, through a window of two segments, and keeps a copy.
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    Graph graph;
    const uint64_t window = graph.reserve_scratch(2 * bytes);
    std::vector<uint32_t> taken, kept;
    for (uint32_t k = 0; k < segments; ++k) {
      const Place slot = scratch_place(window + k % 2 * bytes);
      const uint32_t fill =
          rank == 0 ? graph.copy(at(from, k * bytes), slot, bytes) : graph.pull(rank - 1, k, slot, bytes);
      if (k >= 2) graph.order(kept[k - 2], fill);
      if (k >= 2 && rank + 1 < ranks) graph.order_after_taken(taken[k - 2], fill);
      if (rank + 1 < ranks) taken.push_back(graph.offer(rank + 1, k, slot, bytes, fill));
      kept.push_back(graph.copy(slot, at(to[rank], k * bytes), bytes));
      graph.order(fill, kept[k]);
    }
    for (uint64_t i = random() % 30; i > 0; --i) cluster.step();
    cluster.engine_of(rank).post(team[rank], 0, std::move(graph), 0);
  }
  uint32_t gone = ranks;
  if (lose) {
    for (uint64_t i = random() % 500; i > 0; --i) cluster.step();
    gone = static_cast<uint32_t>(random() % ranks);
    random() % 2 == 0 ? cluster.kill_client(gone) : cluster.cut_node(cluster.node_index(gone));
  }
  cluster.settle();
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const bool survives = gone == ranks || (rank != gone && cluster.node_index(rank) != cluster.node_index(gone));
    const auto outcome = cluster.outcome(rank, 0);
    ASSERT_TRUE(!survives || outcome.has_value()) << "rank " << rank << " waits for ever";
    ASSERT_TRUE(outcome != OFFPATH_OK || to[rank] == from) << "rank " << rank << " got garbage";
    if (lose) continue;
    const bool fails = torn == 0 || torn == rank;
    const bool upstream = torn > rank;  // of the hole, or there is none
    ASSERT_TRUE(!fails || outcome == OFFPATH_ERR_MEMORY_FAULT) << "rank " << rank;
    ASSERT_TRUE(fails || !upstream || outcome == OFFPATH_OK) << "rank " << rank;
  }
}

TEST(RandomRing, WithAHoleSomewhere) {
  for (uint64_t seed = 0; seed < 400 && !::testing::Test::HasFailure(); ++seed) run_random_ring(seed, false);
}
TEST(RandomRing, WithALossAtAnyMoment) {
  for (uint64_t seed = 1000; seed < 1600 && !::testing::Test::HasFailure(); ++seed) run_random_ring(seed, true);
}

}  // namespace
}  // namespace offpath::testing
