// SPDX-License-Identifier: BSD-3-Clause
// Multicast steps by themselves: who sends what over which way, what a broken network costs, words and fetches of strangers.
// That results are right and nobody waits, whatever is lost, is shown by collectives_test.cpp.
#include "multicast_nodes.hpp"

#include <algorithm>

namespace offpath::testing {
namespace {

using wire::Kind;

class Multicasting : public ::testing::Test, public Nodes {};

TEST_F(Multicasting, EachByteLeavesItsNodeOnce) {
  offer_groups();
  allgather(0);
  expect_right(0);
  const uint64_t first = datagrams();
  const bool coded = cluster_->engine_of(0).traffic().coded_bytes > 0;
  EXPECT_TRUE(coded || first >= kNodes * 50);
  EXPECT_LE(first, kNodes * (50 + 4)) << "with probes";
  EXPECT_EQ(said(Kind::fetch), 0U);
  EXPECT_EQ(said(Kind::data), 0U);
  allgather(1);
  expect_right(1);
  const uint64_t second = datagrams() - first;
  EXPECT_TRUE(coded ? second < kNodes * 50 : second == kNodes * 50) << "what works is not probed again";
  EXPECT_EQ(said(Kind::fetch), 0U);
  for (uint32_t rank = 0; rank < kNodes; ++rank) {
    EXPECT_EQ(cluster_->engine_of(rank).traffic().received_bytes, 2 * (kNodes - 1) * kBytes);
    EXPECT_EQ(cluster_->told(rank, 1).step_bytes, (kNodes - 1) * kBytes);
  }
}

TEST_F(Multicasting, WhatIsLostIsFetched) {
  offer_groups();
  allgather(0);
  groups_->set_faults({.lost = 0.1, .lost_for_all = 0.05, .doubled = 0.1, .overtaken = 0.3, .stale = 0.2});
  allgather(1);
  expect_right(1);
  EXPECT_GT(said(Kind::fetch), 0U);
}

TEST_F(Multicasting, WithoutGroupsItIsARingForAll) {
  allgather(0);
  expect_right(0);
  EXPECT_EQ(datagrams(), 0U);
  offer_groups();  // too late: the team has found out
  allgather(1);
  expect_right(1);
  EXPECT_EQ(datagrams(), 0U);
}

TEST_F(Multicasting, AGroupInWhichNotAllAreHeardIsNotUsed) {
  offer_groups({.lost = 1});
  allgather(0);
  expect_right(0);
  EXPECT_LE(datagrams(), kNodes * 4) << "probes";
  groups_->set_faults({});
  allgather(1);
  expect_right(1);
  EXPECT_LE(datagrams(), kNodes * 4);
}

TEST_F(Multicasting, AGroupThatLosesTooMuchIsGivenUp) {
  offer_groups();
  allgather(0);
  groups_->set_faults({.lost = 1});
  allgather(1);
  allgather(2);
  allgather(3);
  expect_right(3);
  const uint64_t before = datagrams();
  groups_->set_faults({});
  allgather(4);
  expect_right(4);
  EXPECT_EQ(datagrams(), before);
}

// Several tasks at a time, and others between them, over a network that is good now and bad then: one task may find out that
// the group does not work while another one uses it.
TEST(Multicasts, OfOneTeamAtTheSameTime) {
  constexpr uint64_t kTasks = 8;
  const fabric::GroupFaults kinds[] = {{}, {.lost = 0.3}, {.lost = 1}, {.lost = 0.1, .overtaken = 0.3, .stale = 0.2}};
  for (uint64_t seed = 0; seed < 40 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Nodes nodes(seed);
    std::mt19937_64 random(seed);
    nodes.offer_groups();
    std::array<uint64_t, kNodes> posted{};
    const auto end = [&] { return std::all_of(posted.begin(), posted.end(), [](auto n) { return n == kTasks; }); };
    while (!end()) {
      if (random() % 4 == 0) nodes.groups_->set_faults(kinds[random() % std::size(kinds)]);
      for (uint64_t steps = random() % 60; steps > 0; --steps) nodes.cluster_->step();
      const auto rank = static_cast<uint32_t>(random() % kNodes);
      const bool other = (seed >> posted[rank] & 1) != 0 && posted[rank] % 3 == 2;
      if (posted[rank] == kTasks) continue;
      nodes.post(rank, posted[rank]++, other ? OFFPATH_ALGORITHM_RING : OFFPATH_ALGORITHM_MULTICAST);
    }
    nodes.cluster_->settle();
    for (uint64_t number = 0; number < kTasks; ++number) nodes.expect_right(number);
  }
}

// However many tasks: each one's words are taken when it comes.
TEST(Multicasts, AMemberMayAlwaysBeLate) {
  engine::Config config;
  config.parked_limit = 8;
  Nodes nodes(2, config);
  nodes.offer_groups();
  nodes.allgather(0);
  for (uint64_t number = 1; number < 80; ++number) {
    const auto late = static_cast<uint32_t>(number % kNodes);
    nodes.allgather(number, late);
    nodes.post(late, number);
    nodes.settle();
    nodes.expect_right(number);
  }
}

// Wherever a node stands in the tree, in its chain and in the ring: somebody who waits for it notices, and tells the others.
TEST(Multicasts, EndWhereANodeFallsSilent) {
  if (getenv("OFFPATH_TEST_FABRIC") != nullptr)
    GTEST_SKIP() << "on sockets it may fall silent before anybody has heard it";
  for (uint64_t seed = 120; seed < 180 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Nodes nodes(seed);
    std::mt19937_64 random(seed);
    nodes.offer_groups({.lost = random() % 2 == 0 ? 0 : 0.2});
    const auto silent = static_cast<uint32_t>(random() % kNodes);
    const uint32_t first = silent;  // so the others have not heard its hello
    for (uint32_t i = 0; i < kNodes; ++i) {
      nodes.post((first + i) % kNodes, 0);
      for (uint64_t steps = random() % 30; steps > 0; --steps) nodes.cluster_->step();
    }
    for (uint64_t steps = random() % 400; steps > 0; --steps) nodes.cluster_->step();
    nodes.cluster_->silence_node(silent);
    for (uint64_t now = 1; now < 10 * kSilenceNs; now += kSilenceNs / 2) {
      nodes.cluster_->settle();
      for (uint32_t rank = 0; rank < kNodes; ++rank) {
        if (rank != silent) nodes.cluster_->engine_of(rank).watch(now);
      }
    }
    nodes.cluster_->settle();
    for (uint32_t rank = 0; rank < kNodes; ++rank) {
      if (rank == silent) continue;
      const auto outcome = nodes.cluster_->outcome(rank, 0);
      EXPECT_TRUE(outcome.has_value()) << rank << " waits for ever for " << silent;
      EXPECT_TRUE(outcome != OFFPATH_OK || nodes.is_right(0, rank)) << rank;
    }
  }
}

// By who is above it in the tree, and by who is below.
class Leaving : public Multicasting, public ::testing::WithParamInterface<uint32_t> {
 protected:
  // They look after who is silent now and then.
  void expect_end(offpath_status_t status) {
    for (int looks = 0; looks < 3; ++looks) {
      for (uint32_t rank = 0; rank < kNodes; ++rank) cluster_->engine_of(rank).watch(0);
      cluster_->settle();
    }
    for (uint32_t rank = 0; rank < kNodes; ++rank) {
      if (rank == GetParam()) continue;
      EXPECT_EQ(cluster_->outcome(rank, 1), status) << rank;
    }
  }
};

TEST_P(Leaving, WhoHasEndedIsNotWaitedFor) {
  offer_groups();
  allgather(0);
  allgather(1, GetParam());
  for (uint32_t rank = 0; rank < kNodes; ++rank) EXPECT_EQ(cluster_->outcome(rank, 1), std::nullopt);
  cluster_->kill_client(GetParam());  // had nothing under way
  expect_end(OFFPATH_ERR_PEER_LOST);
}

TEST_P(Leaving, WhoHasLeftTheTeamIsNotWaitedFor) {
  offer_groups();
  allgather(0);
  allgather(1, GetParam());
  cluster_->engine_of(GetParam()).remove_team(handle_of(GetParam()));
  expect_end(OFFPATH_ERR_STATE);
}

INSTANTIATE_TEST_SUITE_P(Nodes, Leaving, ::testing::Range(0U, kNodes));

// Of the team, but out of turn, out of bounds, or of what is over: refused, and nobody is harmed.
TEST_F(Multicasting, StrangeWordsAndFetchesAreRefused) {
  offer_groups();
  allgather(0);
  std::mt19937_64 random(7);
  fabric::Fabric& from = cluster_->fabric_of(3);
  for (uint64_t number : {0, 1, 2}) {
    for (int i = 0; i < 300; ++i) {
      wire::Message message;
      message.kind = random() % 2 == 0 ? Kind::task : Kind::fetch;
      message.team.bytes[0] = 1;
      message.number = number;
      const uint32_t to = static_cast<uint32_t>(random() % 3);
      const bool task = message.kind == Kind::task;
      message.from = task ? 3 : to;
      message.to = task ? to : 3;
      message.channel = random() % 8 == 0 ? wire::Channel::calls : wire::Channel::collectives;
      // Not armed: that is said for an operation to come, which then does not wait for the real word.
      message.word = static_cast<wire::Word>(2 + random() % 7);
      message.status = random() % 3 == 0 && number != 2 ? OFFPATH_ERR_STATE : OFFPATH_OK;
      message.tag = random() % 2 == 0 ? graph::kFetchTags + static_cast<uint32_t>(random() % 3)
                                      : static_cast<uint32_t>(random() % 5);
      message.pull_id = random();
      message.bytes = random() % 3000;
      message.part = static_cast<uint32_t>(random() % 6);
      message.first = static_cast<uint32_t>(random() % 250);
      message.count = random() % 4 == 0 ? UINT32_MAX : static_cast<uint32_t>(random() % 60);
      message.chunk_bytes = static_cast<uint32_t>(random() % 100);
      uint8_t header[wire::kMaxMessageBytes];
      const size_t length = wire::encode(message, header);
      const auto peer = from.connect(cluster_->fabric_of(to).address());
      from.send(peer.value(), {header, length}, {}, 0);
    }
    cluster_->settle();
  }
  allgather(1);
  for (uint32_t rank = 0; rank < kNodes; ++rank) {
    EXPECT_EQ(cluster_->outcome(rank, 1), OFFPATH_OK) << rank;
    EXPECT_TRUE(is_right(1, rank)) << rank;
  }
  EXPECT_GT(cluster_->engine_of(0).refused_count(), 0U);
}

}  // namespace
}  // namespace offpath::testing
