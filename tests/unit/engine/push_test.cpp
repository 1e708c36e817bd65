// SPDX-License-Identifier: BSD-3-Clause
// Short blocks that are sent unasked: how many messages they take, what bounds them, who may leave when.
#include "cluster.hpp"
#include "exchange.hpp"

#include <numeric>

namespace offpath::testing {
namespace {

using graph::client_place;
using graph::Graph;
using graph::scratch_place;
using wire::Kind;
using Bytes = std::vector<uint8_t>;
using Kinds = std::vector<Kind>;

constexpr uint64_t kMaxUnanswered = 32;  // pushes.cpp

class Push : public ::testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    // Hellos are said, and members' clients are known to each other.
    for (uint32_t rank = 0; rank < 2; ++rank) post(rank, 0, Graph());
    cluster.settle();
    forget();
  }
  void forget() { cluster.fabric_of(0).sent.clear(), cluster.fabric_of(1).sent.clear(); }
  void post(uint32_t rank, uint64_t sequence, Graph graph) {
    cluster.engine_of(rank).post(team[rank], sequence, std::move(graph), sequence);
  }
  static Graph sends(const Bytes& from) {
    Graph graph;
    graph.offer(1, 0, client_place(address_of(from.data())), from.size());
    return graph;
  }
  static Graph takes(Bytes& to) {
    Graph graph;
    graph.pull(0, 0, client_place(address_of(to.data())), to.size());
    return graph;
  }
  void expect_arrival_after(const std::function<void()>& leave) {
    post(0, 1, sends(from));
    cluster.engine_of(0).progress();
    if (ports_are_late()) cluster.settle();  // until it is on its way
    leave();
    post(1, 1, takes(to));
    cluster.settle();
    EXPECT_EQ(cluster.outcome(1, 1), OFFPATH_OK);
    EXPECT_EQ(to, from);
    acknowledge();
  }
  Kinds sent(uint32_t rank) { return cluster.fabric_of(rank).sent; }
  void acknowledge() {
    cluster.engine_of(1).tell_senders();
    cluster.settle();
    EXPECT_EQ(cluster.engine_of(0).unconfirmed(), 0U);
    EXPECT_FALSE(cluster.engine_of(1).senders_wait());
  }

  Cluster cluster{2, 2, GetParam(), {}, std::make_shared<FarMemory>()};
  std::vector<engine::TeamHandle> team = cluster.make_team({0, 1}, 1);
  Bytes from = Bytes(100, 7), to = Bytes(100, 0);
};
INSTANTIATE_TEST_SUITE_P(Seeds, Push, ::testing::Values(1, 2, 3));

TEST_P(Push, OneWayIfItWasAskedFor) {
  post(1, 1, takes(to));
  cluster.settle();
  post(0, 1, sends(from));
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, 1), OFFPATH_OK);
  EXPECT_EQ(cluster.outcome(1, 1), OFFPATH_OK);
  EXPECT_EQ(to, from);
  EXPECT_EQ(sent(0), Kinds{Kind::push});
  EXPECT_EQ(sent(1), Kinds{Kind::pull});
  EXPECT_EQ(cluster.engine_of(0).unconfirmed(), 0U);
  EXPECT_FALSE(cluster.engine_of(1).senders_wait());
}

TEST_P(Push, OneWayIfItWasNot) {
  post(0, 1, sends(from));
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, 1), OFFPATH_OK) << "its memory is free";
  from.assign(100, 9);
  EXPECT_EQ(cluster.engine_of(0).unconfirmed(), 1U);
  EXPECT_FALSE(cluster.engine_of(1).senders_wait()) << "it lies there";
  post(1, 1, takes(to));
  if (ports_are_late()) cluster.settle();
  EXPECT_EQ(cluster.outcome(1, 1), OFFPATH_OK) << "nothing is waited for";
  EXPECT_EQ(to, Bytes(100, 7));
  EXPECT_EQ(sent(0), Kinds{Kind::push});
  EXPECT_TRUE(sent(1).empty()) << "nobody waits for an answer";
  EXPECT_TRUE(cluster.engine_of(1).senders_wait());
  acknowledge();
  EXPECT_EQ(sent(1), Kinds{Kind::done});
}

TEST_P(Push, AnAnswerTravelsWithTheNextMessage) {
  post(0, 1, sends(from));
  cluster.settle();
  post(1, 1, takes(to));
  Bytes more(100);
  post(1, 2, takes(more));
  cluster.settle();
  EXPECT_EQ(sent(1), Kinds{Kind::batch});
  EXPECT_EQ(cluster.engine_of(0).unconfirmed(), 0U);
  post(0, 2, sends(from));
  cluster.settle();
  EXPECT_EQ(cluster.outcome(1, 2), OFFPATH_OK);
}

TEST_P(Push, MeetsThePullOnTheWay) {
  for (uint64_t sequence = 1; sequence < 200; ++sequence) {
    Bytes block(50, static_cast<uint8_t>(sequence));
    to.assign(50, 0);
    post(sequence % 2, sequence, sequence % 2 == 0 ? sends(block) : takes(to));
    post(1 - sequence % 2, sequence, sequence % 2 == 0 ? takes(to) : sends(block));
    cluster.settle();
    ASSERT_EQ(cluster.outcome(0, sequence), OFFPATH_OK);
    ASSERT_EQ(cluster.outcome(1, sequence), OFFPATH_OK);
    ASSERT_EQ(to, block);
    ASSERT_EQ(cluster.engine_of(0).unconfirmed(), 0U);
  }
}

TEST_P(Push, OfNoBytesIsANotification) {
  from.clear(), to.clear();
  post(1, 1, takes(to));
  cluster.settle();
  EXPECT_FALSE(cluster.outcome(1, 1).has_value());
  post(0, 1, sends(from));
  cluster.settle();
  EXPECT_EQ(cluster.outcome(1, 1), OFFPATH_OK);
  EXPECT_EQ(sent(0), Kinds{Kind::push});
}

TEST_P(Push, LongBlocksAreNotPushed) {
  from.resize(5000), to.resize(5000);
  post(0, 1, sends(from));
  cluster.settle();
  EXPECT_TRUE(sent(0).empty());
  EXPECT_FALSE(cluster.outcome(0, 1).has_value());
  post(1, 1, takes(to));
  cluster.settle();
  EXPECT_EQ(to, from);
}

TEST_P(Push, WhatAStepMakesIsPushedWhenItIsThere) {
  post(1, 1, takes(to));
  Graph graph;
  const auto slot = scratch_place(graph.reserve_scratch(100));
  const uint32_t copy = graph.copy(client_place(address_of(from.data())), slot, 100);
  graph.offer(1, 0, slot, 100, copy);
  post(0, 1, std::move(graph));
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, 1), OFFPATH_OK);
  EXPECT_EQ(to, from);
}

// A sender that runs ahead fills no more than its share of the receiver, and goes on when that has caught up.
TEST_P(Push, ThoseThatLieThereAreBounded) {
  constexpr uint64_t kCount = 100;
  std::vector<Bytes> sources, targets(kCount + 1, Bytes(100));
  for (uint64_t i = 0; i <= kCount; ++i) sources.emplace_back(100, static_cast<uint8_t>(i));
  for (uint64_t i = 1; i <= kCount; ++i) post(0, i, sends(sources[i]));
  cluster.settle();
  uint64_t done = 0;
  for (uint64_t i = 1; i <= kCount; ++i) done += cluster.outcome(0, i).has_value() ? 1 : 0;
  EXPECT_EQ(done, kMaxUnanswered);
  for (uint64_t i = 1; i <= kCount; ++i) post(1, i, takes(targets[i]));
  cluster.settle();
  for (uint64_t i = 1; i <= kCount; ++i) {
    ASSERT_EQ(cluster.outcome(0, i), OFFPATH_OK);
    ASSERT_EQ(cluster.outcome(1, i), OFFPATH_OK);
    ASSERT_EQ(targets[i], sources[i]);
  }
  EXPECT_EQ(cluster.engine_of(1).refused_count(), 0U);
}

TEST_P(Push, OfOperationsThatAreLeftOutOrWantLessIsForgotten) {
  for (uint64_t i = 1; i <= 2 * kMaxUnanswered; ++i) {
    post(0, i, sends(from));
    if (i % 3 != 0) post(1, i, Graph());
    cluster.settle();
    cluster.engine_of(1).tell_senders();
  }
  post(1, 3 * kMaxUnanswered, Graph());
  cluster.settle();
  for (uint64_t i = 1; i <= 2 * kMaxUnanswered; ++i) ASSERT_EQ(cluster.outcome(0, i), OFFPATH_OK);
  acknowledge();
}

TEST_P(Push, TooMuchIsTruncatedAtTheReceiver) {
  for (const bool asked : {true, false}) {
    const uint64_t sequence = asked ? 1 : 2;
    to.assign(50, 1);
    if (asked) post(1, sequence, takes(to)), cluster.settle();
    post(0, sequence, sends(from));
    cluster.settle();
    if (!asked) post(1, sequence, takes(to)), cluster.settle();
    EXPECT_EQ(cluster.outcome(0, sequence), OFFPATH_OK);
    EXPECT_EQ(cluster.outcome(1, sequence), OFFPATH_ERR_TRUNCATED);
    EXPECT_EQ(to, Bytes(50, 1));
  }
}

TEST_P(Push, WhatCannotBeReadIsRefusedAsEver) {
  auto memory = std::make_shared<FarMemory>();
  memory->tear(from.data(), 1);
  Cluster torn(2, 2, GetParam(), {}, memory);
  const auto members = torn.make_team({0, 1}, 1);
  torn.engine_of(0).post(members[0], 0, sends(from), 0);
  torn.settle();
  EXPECT_FALSE(torn.outcome(0, 0).has_value());
  torn.engine_of(1).post(members[1], 0, takes(to), 0);
  torn.settle();
  EXPECT_EQ(torn.outcome(0, 0), OFFPATH_ERR_MEMORY_FAULT);
  EXPECT_EQ(torn.outcome(1, 0), OFFPATH_ERR_MEMORY_FAULT);
}

// The sender has done its part: its team, its process may go.
TEST_P(Push, ArrivesAfterItsSenderHasLeftTheTeam) {
  expect_arrival_after([&] { cluster.engine_of(0).remove_team(team[0]); });
}

TEST_P(Push, ArrivesAfterItsSenderHasEnded) {
  expect_arrival_after([&] { cluster.kill_client(0); });
}

TEST_P(Push, WaitsForItsTeam) {
  const auto early = cluster.join_team({0, 1}, 2, 0);
  cluster.engine_of(0).post(early, 0, sends(from), 50);
  cluster.settle();
  EXPECT_FALSE(cluster.outcome(0, 50).has_value());
  const auto late = cluster.join_team({0, 1}, 2, 1);
  cluster.engine_of(1).post(late, 0, takes(to), 51);
  cluster.settle();
  EXPECT_EQ(cluster.outcome(1, 51), OFFPATH_OK);
  EXPECT_EQ(to, from);
  cluster.engine_of(0).post(early, 1, sends(from), 52);
  if (ports_are_late()) cluster.settle();
  EXPECT_EQ(cluster.outcome(0, 52), OFFPATH_OK) << "the other one is there now";
}

TEST_P(Push, OfTheLostIsKeptOrForgottenButNeverWaitedFor) {
  post(0, 1, sends(from));
  cluster.settle();
  cluster.cut_node(0);
  cluster.settle();
  post(1, 1, takes(to));
  cluster.settle();
  EXPECT_EQ(cluster.outcome(1, 1), OFFPATH_ERR_PEER_LOST) << "something has come from it";
}

TEST_P(Push, ToTheLostIsNotWaitedFor) {
  post(0, 1, sends(from));
  cluster.settle();
  EXPECT_EQ(cluster.engine_of(0).unconfirmed(), 1U);
  cluster.cut_node(1);
  cluster.settle();
  EXPECT_EQ(cluster.engine_of(0).unconfirmed(), 0U);
}

}  // namespace
}  // namespace offpath::testing
