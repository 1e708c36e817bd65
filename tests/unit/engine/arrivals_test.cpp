// SPDX-License-Identifier: BSD-3-Clause
// Operations that end when others have arrived (graph::Ends): who is waited for, and who is not.
#include "hostile.hpp"

#include <tuple>

namespace offpath::testing {
namespace {

using graph::Ends;
constexpr uint32_t kRanks = 6;
constexpr size_t kBytes = 300;

// Three nodes with two ranks each. Odd seeds, and several workers, have mail between ranks of a node.
class Arrivals : public ::testing::TestWithParam<uint64_t>, public Cluster {
 protected:
  Arrivals() : Cluster(3, kRanks, GetParam(), config()) {}
  static engine::Config config() {
    engine::Config config = small_chunks();
    config.chunk_bytes = 200;  // what is shorter leaves unasked
    return config;
  }
  void on_arrived(engine::ClientId client, uint64_t operation) override {
    EXPECT_TRUE(arrived.emplace(client - 1, operation).second) << "arrived twice";
    EXPECT_FALSE(outcome(static_cast<uint32_t>(client - 1), operation)) << "arrived after the end";
  }
  void post(uint32_t rank, uint64_t number, graph::Graph graph, Ends ends, const base::Status& spoilt = {}) {
    graph.ends = ends;
    engine_of(rank).post(team[rank], number, std::move(graph), number, spoilt);
  }
  void post_nothing(uint32_t rank, uint64_t number) { post(rank, number, {}, Ends::together); }
  void offer(graph::Graph& graph, uint32_t to, size_t bytes = kBytes) { graph.offer(to, 0, at(source), bytes); }
  void pull(graph::Graph& graph, uint32_t self, uint32_t from, size_t bytes = kBytes) {
    graph.pull(from, 0, at(target[self], from * kBytes), bytes);
  }
  void look() {
    for (int i = 0; i < 3; ++i) {
      settle();
      for (uint32_t rank = 0; rank < kRanks; ++rank) {
        if (!is_cut(engine_index(rank))) engine_of(rank).watch(0);
      }
    }
    settle();
  }
  size_t ended(uint64_t number) const {
    size_t count = 0;
    for (uint32_t rank = 0; rank < kRanks; ++rank) count += outcome(rank, number).has_value() ? 1 : 0;
    return count;
  }

  std::vector<engine::TeamHandle> team = make_team(everybody(kRanks), 1);
  std::vector<uint8_t> source = std::vector<uint8_t>(kBytes, 7);
  std::vector<std::vector<uint8_t>> target{kRanks, std::vector<uint8_t>(kRanks* kBytes)};
  std::set<std::pair<uint64_t, uint64_t>> arrived;
};
INSTANTIATE_TEST_SUITE_P(Seeds, Arrivals, ::testing::Range(uint64_t{0}, uint64_t{8}));

TEST_P(Arrivals, TogetherNobodyEndsBeforeTheLastHasPosted) {
  for (uint32_t late = 0; late < kRanks; ++late) {
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      if (rank != late) post_nothing(rank, late);
    }
    look();
    EXPECT_EQ(ended(late), 0U) << late;
    EXPECT_EQ(arrived.size(), kRanks * (late + 1) - 1);
    post_nothing(late, late);
    look();
    for (uint32_t rank = 0; rank < kRanks; ++rank) EXPECT_EQ(outcome(rank, late), OFFPATH_OK) << late;
  }
  for (uint32_t rank = 0; rank < kRanks; ++rank) EXPECT_FALSE(engine_of(rank).awaits());
}

TEST_P(Arrivals, SeveralUnderWayEndInAnyOrder) {
  for (uint64_t number = 0; number < 3; ++number) {
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      graph::Graph graph;
      if (rank == 0 && number == 0) pull(graph, 0, 5);
      if (rank != 5) post(rank, number, std::move(graph), Ends::together);
    }
  }
  graph::Graph last;
  offer(last, 0);
  post(5, 0, std::move(last), Ends::together);
  look();
  EXPECT_EQ(ended(0), kRanks);
  EXPECT_EQ(ended(1), 0U);
  post_nothing(5, 1), post_nothing(5, 2);
  look();
  EXPECT_EQ(ended(1) + ended(2), 2 * kRanks);
}

// 0 -> 1 <- 2, and nobody else: 0 ends when 1 has both blocks, and 2 with it; others do not even post.
TEST_P(Arrivals, ByPairsWhoTakesABlockIsWaitedForAndNobodyElse) {
  for (const size_t bytes : {size_t{0}, size_t{40}, kBytes}) {
    const uint64_t number = bytes;
    graph::Graph zero, one, two;
    offer(zero, 1, bytes), offer(two, 1, bytes);
    pull(one, 1, 0, bytes), pull(one, 1, 2, bytes);
    post(0, number, std::move(zero), Ends::by_pairs);
    post(1, number, std::move(one), Ends::by_pairs);
    look();
    EXPECT_EQ(ended(number), 0U) << "1 does not have all yet";
    EXPECT_TRUE(arrived.contains({0, number}));
    post(2, number, std::move(two), Ends::by_pairs);
    look();
    for (const uint32_t rank : {0U, 1U, 2U}) EXPECT_EQ(outcome(rank, number), OFFPATH_OK) << bytes;
    EXPECT_EQ(ended(number), 3U);
  }
}

// Lengths that do not match: a short block leaves unasked, and nobody takes it. That ends like a long one.
TEST_P(Arrivals, ByPairsABlockThatNobodyWantsIsNotWaitedFor) {
  for (uint32_t rank = 0; rank < kRanks; ++rank) post_nothing(rank, 0);
  look();  // all have heard of all
  for (const size_t bytes : {size_t{40}, kBytes}) {
    graph::Graph graph;
    for (const uint32_t to : {1U, 3U}) offer(graph, to, bytes);
    post(0, bytes, std::move(graph), Ends::by_pairs);
    look();
    EXPECT_FALSE(outcome(0, bytes)) << "1 and 3 may want it yet";
    post(1, bytes, {}, Ends::by_pairs), post(3, bytes, {}, Ends::by_pairs);
    look();
    EXPECT_EQ(outcome(0, bytes), OFFPATH_OK) << bytes;
  }
}

TEST_P(Arrivals, WhoFailsDoesNotHoldUpOthers) {
  for (const Ends ends : {Ends::together, Ends::by_pairs}) {
    for (const bool spoilt : {false, true}) {
      const uint64_t number = 10 * static_cast<uint64_t>(ends) + (spoilt ? 1 : 0);
      for (uint32_t rank = 0; rank < kRanks; ++rank) {
        graph::Graph graph;
        if (rank == 0) offer(graph, 1), offer(graph, 3);
        if (rank == 1) pull(graph, 1, 0, spoilt ? kBytes : 50);
        if (rank == 3) pull(graph, 3, 0);
        if (ends == Ends::by_pairs && graph.steps.empty() && graph.exports.empty()) continue;
        const bool bad = rank == 1 && spoilt;
        post(rank, number, std::move(graph), ends,
             bad ? base::Status::error(OFFPATH_ERR_RANGE, "bad") : base::Status());
      }
      look();
      EXPECT_EQ(outcome(1, number), spoilt ? OFFPATH_ERR_RANGE : OFFPATH_ERR_TRUNCATED);
      EXPECT_FALSE(arrived.contains({1, number})) << "it has no result";
      EXPECT_EQ(outcome(0, number), OFFPATH_OK);
      EXPECT_EQ(outcome(3, number), OFFPATH_OK);
      EXPECT_EQ(ended(number), ends == Ends::together ? kRanks : 3);
    }
  }
}

// Its process, wherever it is in the operation, and although nothing goes from or to it.
TEST_P(Arrivals, WhoIsLostDoesNotHoldUpOthers) {
  for (const uint32_t lost : {0U, 1U, 5U}) {
    for (const bool has_posted : {false, true}) {
      Cluster cluster(3, kRanks, GetParam());
      const auto handles = cluster.make_team(everybody(kRanks), 1);
      const auto post_empty = [&](uint32_t rank, uint64_t number) {
        graph::Graph graph;
        graph.ends = Ends::together;
        cluster.engine_of(rank).post(handles[rank], number, std::move(graph), number);
      };
      for (uint32_t rank = 0; rank < kRanks; ++rank) post_empty(rank, 0);
      cluster.settle();
      for (uint32_t rank = 0; rank < kRanks; ++rank) {
        // One is later than the loss: the operation is an error there, and the others hear of it.
        if (rank != 4 && (rank != lost || has_posted)) post_empty(rank, 1);
      }
      cluster.settle();
      cluster.kill_client(lost);
      cluster.settle();
      post_empty(4, 1);
      cluster.settle();
      for (uint32_t rank = 0; rank < kRanks; ++rank) {
        EXPECT_EQ(cluster.outcome(rank, 0), OFFPATH_OK);
        EXPECT_TRUE(rank == lost || cluster.outcome(rank, 1).has_value()) << rank << " waits for " << lost;
      }
    }
  }
}

// What others have said is not forgotten with the member it was said to.
TEST_P(Arrivals, WhoIsLateHearsWhatWasSaidToOneThatIsLost) {
  for (uint32_t rank = 0; rank < kRanks; ++rank) post(rank, 0, {}, Ends::alone);
  settle();
  for (const uint32_t rank : {1U, 2U, 4U, 5U}) post_nothing(rank, 1);
  settle();
  kill_client(0);
  post_nothing(3, 1);  // by the same worker, and perhaps it has not heard of the loss yet
  settle();
  for (uint32_t rank = 1; rank < kRanks; ++rank) EXPECT_TRUE(outcome(rank, 1).has_value()) << rank;
}

TEST_P(Arrivals, ALostServiceEndsWhatWaits) {
  for (uint32_t rank = 0; rank < kRanks; ++rank) post_nothing(rank, 0);
  settle();
  graph::Graph zero, one;
  offer(zero, 1), pull(one, 1, 0);
  post(0, 1, std::move(zero), Ends::together), post(1, 1, std::move(one), Ends::together);
  settle();
  EXPECT_TRUE(arrived.contains({0, 1}) && arrived.contains({1, 1}));
  cut_node(2);  // neither has anything of it
  settle();
  for (const uint32_t rank : {0U, 1U}) EXPECT_EQ(outcome(rank, 1), OFFPATH_OK) << "its own result is complete";
  post_nothing(3, 1), post_nothing(4, 1);
  settle();
  for (const uint32_t rank : {3U, 4U}) EXPECT_EQ(outcome(rank, 1), OFFPATH_ERR_NOT_STARTED);
}

// As many nodes as rounds of two to four need, one more, one less, and such as overlap nowhere.
class ArrivalsInRounds : public ::testing::TestWithParam<std::tuple<uint32_t, uint32_t>> {
 protected:
  ArrivalsInRounds() : cluster_(nodes_, nodes_, nodes_, config()) {}
  static engine::Config config() {
    engine::Config config;
    config.arrivals_radix = std::get<1>(GetParam());
    return config;
  }
  void post(uint32_t rank, uint64_t number) {
    graph::Graph graph;
    graph.ends = Ends::together;
    cluster_.engine_of(rank).post(team_[rank], number, std::move(graph), number);
  }
  size_t ended(uint64_t number) const {
    size_t count = 0;
    for (uint32_t rank = 0; rank < nodes_; ++rank) count += cluster_.outcome(rank, number) == OFFPATH_OK ? 1 : 0;
    return count;
  }
  void look() {
    cluster_.settle();
    for (uint32_t rank = 0; rank < nodes_; ++rank) cluster_.engine_of(rank).watch(0);
    cluster_.settle();
  }

  const uint32_t nodes_ = std::get<0>(GetParam());
  Cluster cluster_;
  std::vector<engine::TeamHandle> team_ = cluster_.make_team(everybody(nodes_), 1);
};
INSTANTIATE_TEST_SUITE_P(Nodes, ArrivalsInRounds,
                         ::testing::Combine(::testing::Values(3U, 4U, 5U, 8U, 9U, 10U, 15U, 16U, 17U),
                                            ::testing::Values(2U, 3U, 4U)));

TEST_P(ArrivalsInRounds, NobodyEndsBeforeTheLastHasPosted) {
  for (uint32_t late = 0; late < nodes_; ++late) {
    for (uint32_t rank = 0; rank < nodes_; ++rank) {
      if (rank != late) post(rank, late);
    }
    cluster_.settle();
    if (late % 2 == 1) look();  // who is asked answers for itself
    EXPECT_EQ(ended(late), 0U) << late;
    post(late, late);
    cluster_.settle();
    EXPECT_EQ(ended(late), nodes_) << late;
  }
  for (uint32_t rank = 0; rank < nodes_; ++rank) {
    EXPECT_FALSE(cluster_.engine_of(rank).awaits());
    EXPECT_EQ(cluster_.engine_of(rank).refused_count(), 0U);
  }
}

// It was to tell others of those before it.
TEST_P(ArrivalsInRounds, AProcessThatIsLostDoesNotHoldUpOthers) {
  for (uint32_t rank = 0; rank < nodes_; ++rank) post(rank, 0);
  cluster_.settle();
  for (uint32_t rank = 2; rank < nodes_; ++rank) post(rank, 1);
  cluster_.settle();
  cluster_.kill_client(nodes_ - 1);
  cluster_.settle();
  EXPECT_EQ(ended(1), 0U);
  post(0, 1);
  post(1, 1);
  cluster_.settle();
  for (uint32_t rank = 0; rank + 1 < nodes_; ++rank) EXPECT_TRUE(cluster_.outcome(rank, 1).has_value()) << rank;
}

// What it should have posted was refused: it goes on with the next one, and tells nobody anything of this one.
TEST_P(ArrivalsInRounds, WhoLeavesOneOutIsAsked) {
  for (uint32_t rank = 0; rank + 1 < nodes_; ++rank) post(rank, 0);
  for (uint32_t rank = 0; rank < nodes_; ++rank) post(rank, 1);
  cluster_.settle();
  EXPECT_EQ(ended(1), nodes_);
  EXPECT_EQ(ended(0), 0U);
  for (int i = 0; i < 2; ++i) look();
  EXPECT_EQ(ended(0), nodes_ - 1);
}

}  // namespace
}  // namespace offpath::testing
