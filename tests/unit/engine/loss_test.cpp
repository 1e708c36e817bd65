// SPDX-License-Identifier: BSD-3-Clause
// What operations end with when a service or a process goes away. None may hang, none may end twice.
#include "cluster.hpp"
#include "exchange.hpp"
#include "taken_back.hpp"

#include <numeric>

namespace offpath::testing {
namespace {

class Loss : public ::testing::Test {
 protected:
  void post(uint32_t rank, uint64_t sequence) {
    cluster.engine_of(rank).post(
        team[rank], sequence,
        alltoall_graph(rank, 4, address_of(send[rank].data()), address_of(recv[rank].data()), kBytes), sequence);
  }
  static constexpr size_t kBytes = 500;
  Cluster cluster{4, 4, 23};
  std::vector<engine::TeamHandle> team = cluster.make_team({0, 1, 2, 3}, 1);
  std::vector<std::vector<uint8_t>> send{4, std::vector<uint8_t>(4 * kBytes, 9)},
      recv{4, std::vector<uint8_t>(4 * kBytes)};
};

TEST_F(Loss, WhileIdleMeansNotStarted) {
  for (uint32_t rank = 0; rank < 4; ++rank) post(rank, 0);
  cluster.settle();
  cluster.cut_node(3);
  for (uint32_t rank = 0; rank < 3; ++rank) post(rank, 1);
  cluster.settle();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(cluster.outcome(rank, 0), OFFPATH_OK);
    EXPECT_EQ(cluster.outcome(rank, 1), OFFPATH_ERR_NOT_STARTED);
    EXPECT_TRUE(cluster.lost_members(rank).contains({1001, 3}));
  }
}

TEST_F(Loss, OfOneThatNeverPostedMeansNotStarted) {
  for (uint32_t rank = 0; rank < 3; ++rank) post(rank, 0);
  cluster.settle();
  cluster.cut_node(3);
  cluster.settle();
  for (uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(cluster.outcome(rank, 0), OFFPATH_ERR_NOT_STARTED);
}

TEST_F(Loss, InMidOperationMeansPeerLost) {
  for (uint32_t rank = 0; rank < 4; ++rank) post(rank, 0);
  // Pulls have arrived everywhere, data is under way.
  for (uint32_t i = 0; i < 15 * cluster.engines(); ++i) cluster.step();
  cluster.cut_node(3);
  cluster.settle();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    const auto status = cluster.outcome(rank, 0);
    ASSERT_TRUE(status.has_value());
    EXPECT_TRUE(*status == OFFPATH_ERR_PEER_LOST || *status == OFFPATH_OK) << offpath_status_string(*status);
  }
}

TEST_F(Loss, AtAnyMomentNobodyHangs) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    engine::Config config = Cluster::small_chunks();
    if (seed % 3 == 0) config.chunk_bytes = 400;  // short blocks are pushed
    Cluster c(3, 6, seed, config);
    const auto t = c.make_team({0, 1, 2, 3, 4, 5}, 1);
    std::vector<std::vector<uint8_t>> from(6, std::vector<uint8_t>(6 * 150)), to(6, std::vector<uint8_t>(6 * 150));
    for (uint32_t rank = 0; rank < 6; ++rank) {
      c.engine_of(rank).post(
          t[rank], 0, alltoall_graph(rank, 6, address_of(from[rank].data()), address_of(to[rank].data()), 150), 0);
    }
    for (uint64_t i = 0; i < seed; ++i) c.step();
    if (seed % 2 == 0) {
      c.cut_node(2);
    } else {
      c.kill_client(5);
    }
    c.settle();
    for (uint32_t rank = 0; rank < 6; ++rank) {
      const bool survivor = seed % 2 == 0 ? c.node_index(rank) != 2 : rank != 5;
      EXPECT_TRUE(!survivor || c.outcome(rank, 0).has_value()) << "seed " << seed << " rank " << rank;
    }
  }
}

TEST_F(Loss, NobodyWaitsForASurvivorThatMayNotBeginAnyMore) {
  // Members 0 and 1 exchange; 1 has not posted, and will not in a broken team.
  for (uint32_t rank = 0; rank < 4; ++rank) post(rank, 0);
  cluster.settle();
  graph::Graph graph;
  graph.offer(1, 0, graph::client_place(address_of(send[0].data())), kBytes);
  cluster.engine_of(0).post(team[0], 1, std::move(graph), 1);
  cluster.settle();
  EXPECT_FALSE(cluster.outcome(0, 1).has_value());
  cluster.cut_node(3);
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, 1), OFFPATH_ERR_NOT_STARTED);
}

TEST_F(Loss, OfAProcessFailsItsPeersAndLaterOperations) {
  for (uint32_t rank = 0; rank < 3; ++rank) post(rank, 0);
  post(3, 0);
  cluster.kill_client(3);
  cluster.settle();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(cluster.outcome(rank, 0), OFFPATH_ERR_PEER_LOST);
    post(rank, 1);
  }
  cluster.settle();
  for (uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(cluster.outcome(rank, 1), OFFPATH_ERR_PEER_LOST);
}

// Its program has heard of a loss that no service knows, or wants no results any more.
TEST_F(Loss, GivenUpByAMemberEndsHereAndWhereItIsNeeded) {
  for (uint32_t rank = 0; rank < 3; ++rank) post(rank, 0);
  cluster.settle();
  EXPECT_FALSE(cluster.outcome(1, 0).has_value());
  cluster.engine_of(1).give_up_team(team[1]);
  std::fill(recv[1].begin(), recv[1].end(), uint8_t{7});
  post(3, 0);
  post(1, 1);
  cluster.settle();
  for (uint32_t rank = 0; rank < 4; ++rank) EXPECT_EQ(cluster.outcome(rank, 0), OFFPATH_ERR_PEER_LOST) << rank;
  EXPECT_EQ(cluster.outcome(1, 1), OFFPATH_ERR_PEER_LOST);
  EXPECT_EQ(recv[1], std::vector<uint8_t>(4 * kBytes, 7));  // nothing is written any more
  EXPECT_EQ(cluster.how_lost(0, 1001, 1), engine::Loss::process);
  for (uint32_t rank = 0; rank < 4; ++rank) cluster.engine_of(rank).remove_team(team[rank]);
  cluster.settle();
}

TEST_F(Loss, GivenUpAtAnyMomentNobodyHangs) {
  const bool waits_for_others = ports_are_late() || getenv("OFFPATH_TEST_FABRIC") != nullptr;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Cluster c(3, 6, seed, Cluster::small_chunks());
    const auto t = c.make_team(everybody(6), 1);
    std::vector<std::vector<uint8_t>> from(6, std::vector<uint8_t>(6 * 150)), to(from);
    for (uint32_t rank = 0; rank < 6; ++rank) {
      c.engine_of(rank).post(
          t[rank], 0, alltoall_graph(rank, 6, address_of(from[rank].data()), address_of(to[rank].data()), 150), 0);
    }
    for (uint64_t i = 0; i < seed; ++i) c.step();
    c.engine_of(5).give_up_team(t[5]);
    for (uint32_t round = 0; round < 100; ++round) c.step(c.engine_index(5));
    // Nobody else is needed, but for ports that do what is under way, and for a connection that is being made.
    EXPECT_TRUE(c.outcome(5, 0).has_value() || waits_for_others) << "seed " << seed;
    c.settle();
    for (uint32_t rank = 0; rank < 6; ++rank) EXPECT_TRUE(c.outcome(rank, 0).has_value()) << seed << ' ' << rank;
  }
}

// Member 0 had no connection that it could have lost.
TEST_F(Loss, OfAConnectionIsHeardOfByWhoSpeaksFirstAfterIt) {
  post(1, 0);
  cluster.settle();
  if (!cluster.disconnect(0, 1)) GTEST_SKIP() << "connections of this network last";
  cluster.settle();
  ASSERT_EQ(cluster.outcome(1, 0), OFFPATH_ERR_NOT_STARTED);
  EXPECT_TRUE(cluster.lost_members(0).empty());
  for (const uint32_t rank : {0U, 2U, 3U}) post(rank, 0);
  cluster.settle();
  for (const uint32_t rank : {0U, 2U, 3U}) {
    ASSERT_TRUE(cluster.outcome(rank, 0).has_value()) << "rank " << rank;
    EXPECT_NE(cluster.outcome(rank, 0), OFFPATH_OK);
  }
  EXPECT_EQ(cluster.how_lost(0, 1001, 1), engine::Loss::connection);
}

TEST_F(Loss, OfAConnectionIsToldApartFromADeadServiceOnceBothKnowOfIt) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Cluster c(3, 3, seed, Cluster::small_chunks());
    const auto t = c.make_team(everybody(3), 1);
    std::vector<std::vector<uint8_t>> from(3, std::vector<uint8_t>(3 * 150)), to(from);
    for (uint64_t sequence = 0; sequence < 2; ++sequence) {
      for (uint32_t rank = 0; rank < 3; ++rank) {
        const auto graph = alltoall_graph(rank, 3, address_of(from[rank].data()), address_of(to[rank].data()), 150);
        c.engine_of(rank).post(t[rank], sequence, graph, sequence);
      }
      if (sequence == 0) c.settle();
    }
    if (!c.disconnect(0, 1)) GTEST_SKIP() << "connections of this network last";
    const auto was_found = [&](uint32_t rank) { return c.how_lost(rank, 1001, 1 - rank) == engine::Loss::connection; };
    for (uint64_t steps = 0; steps < 3000 && !(was_found(0) && was_found(1)); ++steps) {
      c.step();
      for (const uint32_t rank : {0U, 1U}) {
        if (was_found(rank)) ASSERT_TRUE(c.lost_members(1 - rank).contains({1001, rank})) << "rank " << rank;
      }
    }
    EXPECT_TRUE(was_found(0) && was_found(1));
    c.cut_node(2);
    c.settle();
    for (const uint32_t rank : {0U, 1U}) EXPECT_EQ(c.how_lost(rank, 1001, 2), engine::Loss::service) << "rank " << rank;
  }
}

// Its service answers on behalf of other hosts, so that one is found, and it is not.
TEST_F(Loss, OfAHostBehindAServiceThatLivesIsNoLossOfAConnection) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Cluster c(3, 3, seed, Cluster::small_chunks());
    const auto t = c.make_team(everybody(3), 1);
    std::vector<std::vector<uint8_t>> from(3, std::vector<uint8_t>(3 * 150)), to(from);
    const auto post_on = [&](uint32_t rank, uint64_t sequence) {
      const auto graph = alltoall_graph(rank, 3, address_of(from[rank].data()), address_of(to[rank].data()), 150);
      c.engine_of(rank).post(t[rank], sequence, graph, sequence);
    };
    for (const uint64_t sequence : {0U, 1U}) {
      for (const uint32_t rank : {0U, 1U}) post_on(rank, sequence);
      if (sequence == 0) post_on(2, sequence), c.settle();
    }
    for (uint64_t steps = c.random()() % 40; steps > 0; --steps) c.step();
    c.engine_of(2).remove_client(3, engine::Loss::host);
    c.settle();
    for (const uint32_t rank : {0U, 1U}) {
      EXPECT_EQ(c.outcome(rank, 1), OFFPATH_ERR_NOT_STARTED) << "rank " << rank;
      EXPECT_EQ(c.how_lost(rank, 1001, 2), engine::Loss::service) << "rank " << rank;
    }
  }
}

TEST_F(Loss, OfConnectionsAtAnyMomentHangsNobodyAndTheNextTeamIsWhole) {
  uint32_t failed = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    engine::Config config = Cluster::small_chunks();
    if (seed % 3 == 0) config.chunk_bytes = 400;  // short blocks are pushed
    Cluster c(3, 6, seed, config);
    if (!c.disconnect(0, 1)) GTEST_SKIP() << "connections of this network last";
    for (uint8_t id = 1; id <= 4; ++id) {
      const auto t = c.make_team(everybody(6), id);
      std::vector<std::vector<uint8_t>> from(6), to(6, std::vector<uint8_t>(6 * 150));
      for (uint32_t rank = 0; rank < 6; ++rank) {
        for (uint8_t block = 0; block < 6; ++block)
          from[rank].insert(from[rank].end(), 150, 40 * id + 6 * rank + block);
        c.engine_of(rank).post(
            t[rank], id, alltoall_graph(rank, 6, address_of(from[rank].data()), address_of(to[rank].data()), 150), id);
      }
      for (uint32_t breaks = id % 2 == 0 ? 0 : 3; breaks > 0; --breaks) {
        for (uint64_t i = c.random()() % 60; i > 0; --i) c.step();
        c.disconnect(0, static_cast<uint32_t>(1 + c.random()() % 2));
      }
      c.settle();
      for (uint32_t rank = 0; rank < 6; ++rank) {
        ASSERT_TRUE(c.outcome(rank, id).has_value()) << "rank " << rank << " of team " << int{id};
        failed += c.outcome(rank, id) != OFFPATH_OK ? 1 : 0;
        if (c.outcome(rank, id) != OFFPATH_OK) continue;
        for (uint32_t block = 0; block < 6; ++block) EXPECT_EQ(to[rank][150 * block], 40 * id + 6 * block + rank);
      }
      if (id % 2 == 0) {
        for (uint32_t rank = 0; rank < 6; ++rank) EXPECT_EQ(c.outcome(rank, id), OFFPATH_OK) << "rank " << rank;
      }
    }
  }
  EXPECT_GT(failed, 0U);
}

// Of twelve each watches seven. Nobody waits for anything.
TEST_F(Loss, OfAServiceIsToldToThoseThatHaveNoConnectionToItAndOfAConnectionIsNot) {
  engine::Config config = Cluster::small_chunks();
  config.arrivals_radix = 2;
  Cluster c(12, 12, 3, config, memory::make_direct(), 1);
  const auto t = c.make_team(everybody(12), 1);
  for (uint32_t rank = 0; rank < 12; ++rank) c.engine_of(rank).post(t[rank], 0, graph::Graph(), 0);
  c.settle();
  EXPECT_FALSE(c.fabric_of(3).find(c.fabric_of(6).address()));
  const bool parted = c.disconnect(0, 1);
  c.settle();
  for (uint32_t rank = 0; rank < 12; ++rank) EXPECT_EQ(c.lost_members(rank).size(), parted && rank < 2 ? 1U : 0U);
  EXPECT_TRUE(!parted || c.how_lost(0, 1001, 1) == engine::Loss::connection);
  c.cut_node(6);
  c.settle();
  for (uint32_t rank = 0; rank < 12; ++rank) {
    EXPECT_TRUE(rank == 6 || c.how_lost(rank, 1001, 6) == engine::Loss::service) << "rank " << rank;
  }
  EXPECT_FALSE(c.fabric_of(3).find(c.fabric_of(6).address()));
}

// It watches another seven, which were told before it had its end of the team.
TEST_F(Loss, OfAServiceIsHeardOfByAMemberThatComesLater) {
  engine::Config config = Cluster::small_chunks();
  config.arrivals_radix = 2;
  Cluster c(12, 12, 3, config, memory::make_direct(), 1);
  const auto begin = [&](uint32_t rank) {
    c.engine_of(rank).post(c.join_team(everybody(12), 1, rank), 0, graph::Graph(), 0);
    c.settle();
  };
  for (uint32_t rank = 0; rank < 12; ++rank) {
    if (rank != 3) begin(rank);
  }
  c.cut_node(6);
  c.settle();
  begin(3);
  EXPECT_EQ(c.how_lost(3, 1001, 6), engine::Loss::service);
}

TEST_F(Loss, AfterwardsNoUserMemoryIsTouched) {
  for (uint32_t rank = 0; rank < 4; ++rank) post(rank, 0);
  for (int i = 0; i < 60; ++i) cluster.step();
  cluster.cut_node(3);
  while (!cluster.outcome(0, 0)) cluster.step();
  const auto before = recv[0];
  cluster.settle();
  EXPECT_EQ(recv[0], before);
}

// An operation that fails gives its buffers back, and what leaves from where it lies is still being read then.
TEST(LossInPlace, WhatIsStillToLeaveIsNotWrittenOver) {
  expect_whole_or_failed(1000, [](uint64_t seed, std::vector<uint8_t>& from) {
    engine::Config config = Cluster::small_chunks();
    config.batched_bytes = 0;
    return std::make_unique<Cluster>(
        3, 3, seed, config,
        memory::make_mapped({address_of(from.data()), from.size(), from.data(), nullptr}, memory::make_direct()), 1);
  });
}

}  // namespace
}  // namespace offpath::testing
