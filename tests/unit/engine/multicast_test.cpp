// SPDX-License-Identifier: BSD-3-Clause
// Multicast steps by themselves: who sends what over which way, what a broken network costs, words and fetches of strangers.
// That results are right and nobody waits, whatever is lost, is shown by collectives_test.cpp.
#include "cluster.hpp"
#include "ops/collectives/collective.hpp"

#include <numeric>

namespace offpath::testing {
namespace {

constexpr uint32_t kNodes = 4;
constexpr uint64_t kBytes = 2000;  // 50 chunks
using wire::Kind;

class Multicasting : public ::testing::Test {
 public:
  Multicasting() {
    const uint32_t nodes = kNodes;
    engine::Config config;
    config.now_ns = [now = std::make_shared<uint64_t>(1)] { return *now += 1'000'000; };
    cluster_ = std::make_unique<Cluster>(nodes, nodes, 2, config, std::make_shared<FarMemory>(), 1);
    std::vector<uint32_t> ranks(nodes);
    std::iota(ranks.begin(), ranks.end(), 0);
    team_ = cluster_->make_team(ranks, 1);
  }
  // Rank `absent` does not take part.
  void allgather(uint64_t number, uint32_t absent = UINT32_MAX) {
    const auto count = static_cast<uint32_t>(team_.size());
    memory_.assign(count, std::vector<uint8_t>(count * kBytes));
    for (uint32_t rank = 0; rank < count; ++rank) {
      ops::Collective collective;
      collective.kind = OFFPATH_ALLGATHER;
      collective.algorithm = OFFPATH_ALGORITHM_MULTICAST;
      for (uint32_t i = 0; i < count; ++i) {
        collective.recv.push_back({i, 0, address_of(memory_[rank].data()) + i * kBytes, kBytes});
      }
      collective.send.push_back(collective.recv[rank]);
      for (uint64_t i = 0; i < kBytes; ++i) memory_[rank][rank * kBytes + i] = value(number, rank, i);
      const auto topology = ops::Topology::make(rank, {10, 11, 12, 13});
      if (rank != absent)
        cluster_->engine_of(rank).post(team_[rank], number, ops::expand(collective, topology), number);
    }
    cluster_->settle();
  }
  bool is_right(uint64_t number, uint32_t rank) const {
    for (uint64_t i = 0; i < memory_[rank].size(); ++i) {
      if (memory_[rank][i] != value(number, static_cast<uint32_t>(i / kBytes), i % kBytes)) return false;
    }
    return true;
  }
  void expect_right(uint64_t number) {
    for (uint32_t rank = 0; rank < team_.size(); ++rank) {
      EXPECT_EQ(cluster_->outcome(rank, number), OFFPATH_OK) << rank;
      EXPECT_TRUE(is_right(number, rank)) << rank;
      EXPECT_EQ(cluster_->engine_of(rank).refused_count(), 0U) << rank;
    }
  }
  size_t said(Kind kind) const {
    size_t count = 0;
    for (uint32_t rank = 0; rank < team_.size(); ++rank) {
      const auto& sent = cluster_->fabric_of(rank).sent;
      count += static_cast<size_t>(std::count(sent.begin(), sent.end(), kind));
    }
    return count;
  }
  uint64_t datagrams() const {
    uint64_t count = 0;
    for (uint32_t rank = 0; rank < team_.size(); ++rank) {
      for (const auto& group : cluster_->fabric_of(rank).groups_joined) count += group->counts().sent;
    }
    return count;
  }
  void offer_groups(const fabric::GroupFaults& faults = {}) { groups_ = &cluster_->offer_groups(1, faults); }

  std::unique_ptr<Cluster> cluster_;
  fabric::LoopbackGroups* groups_ = nullptr;

 private:
  static uint8_t value(uint64_t number, uint32_t owner, uint64_t i) {
    return static_cast<uint8_t>(number * 101 + owner * 31 + i * 7 + i / 256);
  }
  std::vector<engine::TeamHandle> team_;
  std::vector<std::vector<uint8_t>> memory_;
};

TEST_F(Multicasting, EachByteLeavesItsNodeOnce) {
  offer_groups();
  allgather(0);
  expect_right(0);
  const uint64_t probes = datagrams() - kNodes * 50;
  EXPECT_LE(probes, kNodes * 4);
  EXPECT_EQ(said(Kind::fetch), 0U);
  EXPECT_EQ(said(Kind::data), 0U);
  allgather(1);
  expect_right(1);
  EXPECT_EQ(datagrams() - probes, 2 * kNodes * 50) << "what works is not probed again";
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

TEST_F(Multicasting, WhoHasLeftIsNotWaitedFor) {
  offer_groups();
  allgather(0);
  allgather(1, 3);
  for (uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(cluster_->outcome(rank, 1), std::nullopt);
  cluster_->kill_client(3);  // had nothing under way, so it says nothing: who waits asks now and then
  for (int looks = 0; looks < 3; ++looks) {
    for (uint32_t rank = 0; rank < 3; ++rank) cluster_->engine_of(rank).watch(0);
    cluster_->settle();
  }
  for (uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(cluster_->outcome(rank, 1), OFFPATH_ERR_PEER_LOST) << rank;
}

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
