// SPDX-License-Identifier: BSD-3-Clause
// Short blocks that are sent unasked, where something runs short: members that are late, buffers, time.
#include "cluster.hpp"

#include <numeric>

namespace offpath::testing {
namespace {

using graph::client_place;
using graph::Graph;
using wire::Kind;
using Bytes = std::vector<uint8_t>;

Graph sends(uint32_t to, const Bytes& from) {
  Graph graph;
  graph.offer(to, 0, client_place(address_of(from.data())), from.size());
  return graph;
}

Graph takes(uint32_t from, Bytes& to) {
  Graph graph;
  graph.pull(from, 0, client_place(address_of(to.data())), to.size());
  return graph;
}

// More than a worker keeps for teams that it does not know yet: nothing may be lost because one member is late.
TEST(PushLimits, ManyRunAheadOfAMemberThatIsLate) {
  constexpr uint32_t kSenders = 50, kEach = 32;
  Cluster cluster(2, 2 * kSenders + 1, 1, {});
  std::vector<uint32_t> members{0};
  for (uint32_t i = 0; i < kSenders; ++i) members.push_back(2 * i + 1);  // all on the other node
  std::vector<Bytes> from(kSenders + 1, Bytes(wire::kPushedBytes));
  for (uint32_t i = 1; i <= kSenders; ++i) {
    std::iota(from[i].begin(), from[i].end(), static_cast<uint8_t>(i));
    const auto team = cluster.join_team(members, 1, i);
    for (uint64_t k = 0; k < kEach; ++k) cluster.engine_of(members[i]).post(team, k, sends(0, from[i]), k);
    cluster.settle();
  }
  const auto late = cluster.join_team(members, 1, 0);
  std::vector<Bytes> to(kSenders + 1, Bytes(wire::kPushedBytes));
  for (uint64_t k = 0; k < kEach; ++k) {
    Graph graph;
    for (uint32_t i = 1; i <= kSenders; ++i) graph.pull(i, 0, client_place(address_of(to[i].data())), to[i].size());
    cluster.engine_of(0).post(late, k, std::move(graph), k);
    cluster.settle();
    ASSERT_EQ(cluster.outcome(0, k), OFFPATH_OK) << "operation " << k;
    for (uint32_t i = 1; i <= kSenders; ++i) ASSERT_EQ(to[i], from[i]);
  }
  EXPECT_EQ(cluster.engine_of(0).refused_count(), 0U);
}

// Answers that nobody waits for, more than a buffer takes, when there is only one.
TEST(PushLimits, AnswersFillMoreThanTheLastBuffer) {
  engine::Config config;
  config.chunk_bytes = 200;
  config.pool_chunks = 2;
  Cluster cluster(2, 2, 1, config);
  const auto team = cluster.make_team({0, 1}, 1);
  for (uint32_t rank = 0; rank < 2; ++rank) cluster.engine_of(rank).post(team[rank], 0, Graph(), 0);
  cluster.settle();
  const Bytes from(20, 7);
  constexpr uint64_t kCount = 15;
  std::vector<Bytes> to(kCount + 2, Bytes(20));
  for (uint64_t k = 1; k <= kCount; ++k) cluster.engine_of(0).post(team[0], k, sends(1, from), k), cluster.settle();
  for (uint64_t k = 1; k <= kCount + 1; ++k) cluster.engine_of(1).post(team[1], k, takes(0, to[k]), k);
  cluster.settle();
  cluster.engine_of(0).post(team[0], kCount + 1, sends(1, from), kCount + 1);
  cluster.settle();
  for (uint64_t k = 1; k <= kCount + 1; ++k) {
    ASSERT_EQ(cluster.outcome(0, k), OFFPATH_OK);
    ASSERT_EQ(cluster.outcome(1, k), OFFPATH_OK);
    ASSERT_EQ(to[k], from);
  }
  EXPECT_EQ(cluster.engine_of(0).unconfirmed(), 0U);
}

}  // namespace
}  // namespace offpath::testing
