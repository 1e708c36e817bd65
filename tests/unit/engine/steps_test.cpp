// SPDX-License-Identifier: BSD-3-Clause
// Graphs of more than exchanges: scratch, layouts, notifications, steps that wait for exports, long chains.
// Everything on memory that has a view and on memory that has none, inside a node and between nodes.
#include "cluster.hpp"
#include "exchange.hpp"

#include <cstring>
#include <numeric>

namespace offpath::testing {
namespace {

using graph::client_place;
using graph::Graph;
using graph::Place;
using graph::scratch_place;
using Bytes = std::vector<uint8_t>;

constexpr kernels::Reduction kSumI32{OFFPATH_OP_SUM, OFFPATH_ELEMENT_I32};

std::shared_ptr<memory::Port> far_or_direct(bool far) {
  if (far) return std::make_shared<FarMemory>();
  return memory::make_direct();
}

struct Shape {
  uint32_t nodes;
  bool far;
};
std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.nodes << " nodes, " << (shape.far ? "far" : "direct");
}
class EachShape : public ::testing::TestWithParam<Shape> {
 protected:
  Cluster make(uint32_t ranks, engine::Config config = Cluster::small_chunks()) {
    return Cluster(GetParam().nodes, ranks, 31, config, far_or_direct(GetParam().far));
  }
};
INSTANTIATE_TEST_SUITE_P(Shapes, EachShape,
                         ::testing::Values(Shape{1, false}, Shape{1, true}, Shape{2, false}, Shape{2, true},
                                           Shape{5, true}),
                         [](const auto& test) {
                           return std::to_string(test.param.nodes) + (test.param.far ? "far" : "direct");
                         });

// Sums of everybody at rank 0 in scratch, which hands them out from there.
TEST_P(EachShape, AllreduceThroughScratch) {
  constexpr uint32_t kRanks = 5;
  constexpr size_t kCount = 100, kBytes = kCount * sizeof(int32_t);
  Cluster cluster = make(kRanks);
  const auto team = cluster.make_team(everybody(kRanks), 1);
  std::vector<std::vector<int32_t>> send(kRanks, std::vector<int32_t>(kCount)), recv = send;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    for (size_t i = 0; i < kCount; ++i) send[rank][i] = static_cast<int32_t>(rank * 1000 + i);
  }
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    Graph graph;
    graph.reduction = kSumI32;
    const Place mine = client_place(address_of(send[rank].data())),
                result = client_place(address_of(recv[rank].data()));
    if (rank == 0) {
      const Place sum = scratch_place(graph.reserve_scratch(kBytes));
      Place so_far = mine;
      uint32_t last = graph::kNoStep;
      for (uint32_t peer = 1; peer < kRanks; ++peer) {
        const Place incoming = scratch_place(graph.reserve_scratch(kBytes));
        const uint32_t pull = graph.pull(peer, 7, incoming, kBytes);
        const uint32_t reduce = graph.reduce(so_far, incoming, sum, kBytes);
        graph.order(pull, reduce), graph.order(last, reduce);
        last = reduce;
        so_far = sum;
      }
      graph.order(last, graph.copy(sum, result, kBytes));
      for (uint32_t peer = 1; peer < kRanks; ++peer) graph.offer(peer, 8, sum, kBytes, last);
    } else {
      graph.offer(0, 7, mine, kBytes);
      graph.pull(0, 8, result, kBytes);
    }
    cluster.engine_of(rank).post(team[rank], 0, std::move(graph), 0);
  }
  cluster.settle();
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(cluster.outcome(rank, 0), OFFPATH_OK);
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(recv[rank][i], static_cast<int32_t>(10000 + 5 * i));
  }
}

// In a mode that leaves user data unprotected the rest is not.
TEST(Steps, WhatCodeActsUponIsNoMereData) {
  for (const bool interpreted : {false, true}) {
    engine::Config config = Cluster::small_chunks();
    config.batched_bytes = 0;
    Cluster cluster(2, 2, 31, config);
    const auto team = cluster.make_team({0, 1}, 1);
    const Bytes from(5000, 3);
    Bytes to(5000);
    Graph sender, receiver;
    sender.interpreted = interpreted;
    sender.offer(1, 0, at(from), from.size());
    receiver.pull(0, 0, at(to), to.size());
    cluster.engine_of(0).post(team[0], 0, std::move(sender), 0);
    cluster.engine_of(1).post(team[1], 0, std::move(receiver), 0);
    cluster.settle();
    EXPECT_EQ(to, from);
    const auto of = interpreted ? fabric::Of::interpreted : fabric::Of::user_data;
    const auto& said = cluster.fabric_of(0).data_of;
    EXPECT_TRUE(said.empty() || said == std::set<fabric::Of>{of}) << "compressed, or not";
    EXPECT_TRUE(!said.empty() || getenv("OFFPATH_TEST_CODEC") != nullptr);
  }
}

TEST_P(EachShape, BlocksThroughLayoutsOnEitherSide) {
  Cluster cluster = make(2);
  const auto team = cluster.make_team({0, 1}, 1);
  constexpr size_t kElements = 50;
  Bytes from(kElements * 10), to(kElements * 7 + 7, 0xEE), expected = to;
  std::iota(from.begin(), from.end(), uint8_t{0});
  // The sender gives bytes 3,4,5,0 of every ten; the receiver puts four bytes to the end of every seven.
  for (size_t i = 0; i < kElements; ++i) {
    const uint8_t element[] = {from[i * 10 + 3], from[i * 10 + 4], from[i * 10 + 5], from[i * 10]};
    std::copy(std::begin(element), std::end(element), expected.begin() + static_cast<std::ptrdiff_t>(i * 7 + 3));
  }
  Graph sender, receiver;
  sender.layouts.push_back({4, 10, {{3, 3}, {0, 1}}});
  sender.offer(1, 0, {address_of(from.data()), 0, 0}, kElements * 4);
  receiver.layouts.push_back({4, 7, {{3, 4}}});
  receiver.pull(0, 0, {address_of(to.data()), 0, 0}, kElements * 4);
  cluster.engine_of(0).post(team[0], 0, std::move(sender), 0);
  cluster.engine_of(1).post(team[1], 0, std::move(receiver), 0);
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, 0), OFFPATH_OK);
  EXPECT_EQ(cluster.outcome(1, 0), OFFPATH_OK);
  EXPECT_EQ(to, expected);
}

// 2 is late, 0 waits for it and then tells 1.
TEST_P(EachShape, ANotificationComesWhenItsStepIsDone) {
  Cluster cluster = make(3);
  const auto team = cluster.make_team({0, 1, 2}, 1);
  Bytes data(10, 3), got(10), after(10);
  Graph middle, last, first;
  middle.offer(1, 5, {}, 0, middle.pull(2, 0, at(got), 10));
  last.order(last.pull(0, 5, {}, 0), last.copy(at(data), at(after), 10));
  first.offer(0, 0, at(data), 10);
  cluster.engine_of(1).post(team[1], 0, std::move(last), 0);
  cluster.engine_of(0).post(team[0], 0, std::move(middle), 0);
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, 0), std::nullopt);
  EXPECT_EQ(cluster.outcome(1, 0), std::nullopt);
  EXPECT_EQ(after, Bytes(10)) << "the step that waits for the notification has not started";
  cluster.engine_of(2).post(team[2], 0, std::move(first), 0);
  cluster.settle();
  for (uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(cluster.outcome(rank, 0), OFFPATH_OK);
  EXPECT_EQ(after, data);
  EXPECT_EQ(cluster.told(0, 0).served, 1U);
  EXPECT_EQ(cluster.told(1, 0).steps, 2U);
}

TEST_P(EachShape, ANotificationFromAPeerWithoutExportMeansThatItHasPosted) {
  Cluster cluster = make(2);
  const auto team = cluster.make_team({0, 1}, 1);
  Graph graph;
  graph.pull(1, 0, {}, 0);
  cluster.engine_of(0).post(team[0], 0, std::move(graph), 0);
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, 0), std::nullopt);
  cluster.engine_of(1).post(team[1], 0, {}, 0);
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, 0), OFFPATH_OK);
}

// The same where the peer was done with the operation before it was asked.
TEST_P(EachShape, APullAfterThePeersEndFindsAnEmptyBlock) {
  Cluster cluster = make(2);
  const auto team = cluster.make_team({0, 1}, 1);
  Bytes to(10, 0xEE);
  cluster.engine_of(1).post(team[1], 0, {}, 0);
  cluster.settle();
  ASSERT_EQ(cluster.outcome(1, 0), OFFPATH_OK);
  Graph graph;
  graph.pull(1, 0, at(to), 10);
  cluster.engine_of(0).post(team[0], 0, std::move(graph), 0);
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, 0), OFFPATH_OK);
  EXPECT_EQ(to, Bytes(10, 0xEE));
}

// One block of scratch for all segments: the next one may only come when the last was taken.
TEST_P(EachShape, AWindowIsReusedWhenItsExportWasTaken) {
  constexpr uint32_t kSegments = 40, kBytes = 150;
  Cluster cluster = make(3);
  const auto team = cluster.make_team({0, 1, 2}, 1);
  Bytes from(kSegments * kBytes);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i / kBytes + i);
  std::vector<Bytes> to(3, Bytes(from.size()));
  Graph sender;
  const Place window = scratch_place(sender.reserve_scratch(kBytes));
  uint32_t taken[2] = {graph::kNoStep, graph::kNoStep};
  for (uint32_t k = 0; k < kSegments; ++k) {
    const uint32_t fill = sender.copy(at(from, k * kBytes), window, kBytes);
    for (uint32_t& one : taken) {
      if (one != graph::kNoStep) sender.order_after_taken(one, fill);
    }
    for (uint32_t peer = 1; peer < 3; ++peer) taken[peer - 1] = sender.offer(peer, k, window, kBytes, fill);
  }
  cluster.engine_of(0).post(team[0], 0, std::move(sender), 0);
  for (uint32_t rank = 1; rank < 3; ++rank) {
    cluster.settle();  // the second receiver is late
    Graph receiver;
    for (uint32_t k = kSegments; k-- > 0;) receiver.pull(0, k, at(to[rank], k * kBytes), kBytes);
    cluster.engine_of(rank).post(team[rank], 0, std::move(receiver), 0);
  }
  cluster.settle();
  for (uint32_t rank = 0; rank < 3; ++rank) ASSERT_EQ(cluster.outcome(rank, 0), OFFPATH_OK);
  EXPECT_EQ(to[1], from);
  EXPECT_EQ(to[2], from);
}

TEST_P(EachShape, ManyPullsAtOnce) {
  constexpr uint32_t kBlocks = 10000, kBytes = 12;
  engine::Config config;
  Cluster cluster = make(2, config);
  const auto team = cluster.make_team({0, 1}, 1);
  Bytes from(kBlocks * kBytes), to(from.size());
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i * 7 + i / 256);
  Graph sender, receiver;
  for (uint32_t k = 0; k < kBlocks; ++k) {
    sender.offer(1, k, at(from, k * kBytes), kBytes);
    receiver.pull(0, k, at(to, k * kBytes), kBytes);
  }
  cluster.engine_of(1).post(team[1], 0, std::move(receiver), 0);
  cluster.engine_of(0).post(team[0], 0, std::move(sender), 0);
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, 0), OFFPATH_OK);
  EXPECT_EQ(cluster.outcome(1, 0), OFFPATH_OK);
  EXPECT_EQ(to, from);
}

// In whatever order they end: what comes after both has nothing to work on.
TEST(Steps, AStepThatWaitsForAFailedOneDoesNotRun) {
  for (const bool failed_first : {false, true}) {
    Cluster cluster(1, 1, 1);
    const auto team = cluster.make_team({0}, 1);
    const Bytes from(10, 3);
    Bytes to(10), later(10);
    Graph graph;
    const uint32_t one = graph.copy(failed_first ? Place{address_of(from.data()), 0, 7} : at(from), at(to), 10);
    const uint32_t other = graph.copy(failed_first ? at(from) : Place{address_of(from.data()), 0, 7}, at(to), 10);
    const uint32_t last = graph.copy(at(from), at(later), 10);
    graph.order(one, last), graph.order(other, last);
    cluster.engine_of(0).post(team[0], 0, std::move(graph), 0);
    cluster.settle();
    EXPECT_EQ(cluster.outcome(0, 0), OFFPATH_ERR_ARGUMENT) << "there is no layout 7";
    EXPECT_EQ(to, from);
    EXPECT_EQ(later, Bytes(10));
  }
}

TEST(Steps, LongChainsNeedNoStack) {
  constexpr uint32_t kSteps = 300000;
  Cluster cluster(1, 1, 1);
  const auto team = cluster.make_team({0}, 1);
  Graph graph;
  for (uint32_t i = 0; i < kSteps; ++i) {
    const uint32_t step = graph.copy({}, {}, 0);
    if (i > 0) graph.order(step - 1, step);
  }
  cluster.engine_of(0).post(team[0], 0, std::move(graph), 0);
  EXPECT_EQ(cluster.outcome(0, 0), OFFPATH_OK) << "nothing to wait for";
}

// 20000 steps that each wait for a message, and as many exports that each wait for a step.
TEST(Steps, LongChainsOverTwoNodes) {
  constexpr uint32_t kSteps = 20000;
  Cluster cluster(2, 2, 1, {});
  const auto team = cluster.make_team({0, 1}, 1);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Graph graph;  // ping pong: even tags go from 0 to 1
    uint32_t last = graph::kNoStep;
    for (uint32_t tag = 0; tag < kSteps; ++tag) {
      if (tag % 2 == rank) {
        graph.offer(1 - rank, tag, {}, 0, last);
      } else {
        const uint32_t pull = graph.pull(1 - rank, tag, {}, 0);
        graph.order(last, pull);
        last = pull;
      }
    }
    cluster.engine_of(rank).post(team[rank], 0, std::move(graph), 0);
  }
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, 0), OFFPATH_OK);
  EXPECT_EQ(cluster.outcome(1, 0), OFFPATH_OK);
}

}  // namespace
}  // namespace offpath::testing
