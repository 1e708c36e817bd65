// SPDX-License-Identifier: BSD-3-Clause
// Long blocks that are asked for in turn: the rule by itself, and what it bounds in a cluster.
#include "cluster.hpp"
#include "engine/rooms/turns.hpp"

namespace offpath::testing {
namespace {

using engine::Turns;
using graph::client_place;
using graph::Graph;

constexpr uint64_t kChunk = 8192, kFirst = kChunk / 8, kLong = 100 * kChunk;

Turns narrow() {
  Turns turns(kChunk);
  for (int i = 0; i < 20; ++i) turns.look(2, true);
  return turns;
}

TEST(Turns, NothingIsBoundedUntilSeveralSendersLose) {
  Turns turns(kChunk);
  turns.look(8, false);
  turns.look(1, true);
  EXPECT_EQ(turns.window(), UINT64_MAX);
  for (uint64_t id = 1; id < 9; ++id) EXPECT_EQ(turns.ask(id, kLong), kLong);
  EXPECT_FALSE(turns.next());
}

TEST(Turns, ALossHalvesTheWindowDownToTwoChunksAndItGrowsBackSlowly) {
  Turns turns(kChunk);
  turns.look(2, true);
  EXPECT_EQ(turns.window(), turns.look_bytes() / 2);
  turns.look(2, true);
  EXPECT_EQ(turns.window(), turns.look_bytes() / 2) << "what was asked for before still comes";
  for (int i = 0; i < 20; ++i) turns.look(2, true);
  EXPECT_EQ(turns.window(), 2 * kChunk);
  for (int i = 0; i < 100; ++i) turns.look(2, false);
  EXPECT_LT(turns.window(), 3 * kChunk);
  for (int i = 0; i < 5000; ++i) turns.look(2, false);
  EXPECT_EQ(turns.window(), UINT64_MAX);
}

TEST(Turns, ABlockThatComesAloneIsNeverBounded) {
  Turns turns = narrow();
  EXPECT_EQ(turns.ask(1, kLong), kLong);
  EXPECT_EQ(turns.ask(2, kLong), kFirst);
  turns.end(1);
  turns.arrive(2, kFirst, kLong);
  EXPECT_EQ(turns.next()->upto, kLong);
}

TEST(Turns, AShortBlockIsAskedForWhole) {
  Turns turns = narrow();
  turns.ask(1, kLong);
  EXPECT_EQ(turns.ask(2, kFirst), kFirst);
  turns.arrive(2, kFirst, kFirst);
  EXPECT_FALSE(turns.next());
}

TEST(Turns, SendersTakeTurnsAndWhoIsLateHoldsUpNobody) {
  Turns turns = narrow();
  for (uint64_t id = 1; id <= 5; ++id) turns.ask(id, kLong);
  EXPECT_FALSE(turns.next()) << "nobody has begun";
  turns.arrive(3, kFirst, kLong);
  turns.arrive(4, kFirst, kLong);  // 2 and 5 are late, and 1 is whole
  EXPECT_EQ(turns.next()->id, 3U);
  EXPECT_EQ(turns.next()->id, 4U);
  EXPECT_FALSE(turns.next()) << "the window is full";
  turns.arrive(4, kChunk, kLong);
  const auto more = turns.next();
  ASSERT_TRUE(more);
  EXPECT_EQ(more->id, 3U);
  EXPECT_EQ(more->upto, kFirst + 2 * kChunk);
}

TEST(Turns, WhatWasGivenUpMakesRoom) {
  Turns turns = narrow();
  for (uint64_t id = 1; id <= 4; ++id) turns.ask(id, kLong);
  for (uint64_t id = 2; id <= 4; ++id) turns.arrive(id, kFirst, kLong);
  while (turns.next()) continue;
  turns.end(2);
  EXPECT_EQ(turns.next()->id, 4U);
}

TEST(Turns, ABlockMayBeShorterThanWasAskedFor) {
  Turns turns = narrow();
  for (uint64_t id = 1; id <= 3; ++id) turns.ask(id, kLong);
  turns.arrive(2, 100, 100);
  turns.end(2);
  turns.arrive(3, kFirst, kLong);
  EXPECT_EQ(turns.next()->upto, kFirst + kChunk);
}

TEST(Turns, WhoSendsMoreThanHeMayHoldsUpNobody) {
  Turns turns = narrow();
  for (uint64_t id = 1; id <= 3; ++id) turns.ask(id, kLong);
  turns.arrive(2, kFirst + 5 * kChunk, kLong);
  turns.arrive(3, kFirst, kLong);
  EXPECT_TRUE(turns.next().has_value());
}

// Eight nodes send to one, again and again. Returns the most bytes that were under way in the last operation.
uint64_t most_under_way(bool loses) {
  constexpr uint32_t kRanks = 9;
  constexpr uint64_t kOperations = 10, kBytes = 20 * kChunk;
  engine::Config config;
  config.chunk_bytes = kChunk;
  Cluster cluster(kRanks, kRanks, 1, config);
  const auto team = cluster.make_team(everybody(kRanks), 1);
  cluster.fabric_of(0).loses = loses;
  const auto sum = [&] {
    uint64_t bytes = 0;
    for (uint32_t rank = 1; rank < kRanks; ++rank) bytes += cluster.engine_of(rank).traffic().sent_bytes;
    return bytes - cluster.engine_of(0).traffic().received_bytes;
  };
  std::vector<uint8_t> from(kBytes, 7), to(kBytes * kRanks);
  uint64_t most = 0;
  for (uint64_t k = 0; k < kOperations; ++k) {
    Graph takes;
    for (uint32_t rank = 1; rank < kRanks; ++rank)
      takes.pull(rank, 0, client_place(address_of(&to[rank * kBytes])), kBytes);
    cluster.engine_of(0).post(team[0], k, std::move(takes), k);
    for (uint32_t rank = 1; rank < kRanks; ++rank) {
      Graph sends;
      sends.offer(0, 0, client_place(address_of(from.data())), kBytes);
      cluster.engine_of(rank).post(team[rank], k, std::move(sends), k);
    }
    most = 0;
    while (!cluster.outcome(0, k)) {
      cluster.step();
      most = std::max(most, sum());
    }
    EXPECT_EQ(cluster.outcome(0, k), OFFPATH_OK);
    EXPECT_TRUE(std::all_of(to.begin() + kBytes, to.end(), [](uint8_t byte) { return byte == 7; }));
    std::fill(to.begin(), to.end(), 0);
    cluster.settle();
  }
  return most;
}

// One block is asked for whole; of the others there is a beginning each, and the window.
TEST(Turns, IncastIsBoundedWhereSegmentsAreLost) {
  EXPECT_LE(most_under_way(true), 20 * kChunk + 7 * kFirst + 2 * kChunk);
  if (getenv("OFFPATH_TEST_FABRIC") != nullptr) return;  // there the system takes what it likes
  EXPECT_GT(most_under_way(false), 8 * 10 * kChunk) << "and only there";
}

}  // namespace
}  // namespace offpath::testing
