// SPDX-License-Identifier: BSD-3-Clause
// What an operation is said to wait for.
#include "cluster.hpp"

namespace offpath::testing {
namespace {

using engine::Standing;
using engine::Waits;
using graph::client_place;
using graph::Graph;
using Members = std::vector<uint32_t>;

// One block from member 0 to each other member, or what such a member takes.
struct Blocks {
  explicit Blocks(uint32_t size, uint64_t bytes) : from(bytes, 7), to(size, std::vector<uint8_t>(bytes)) {}
  Graph graph(uint32_t member) {
    Graph out;
    if (member > 0) out.pull(0, 0, client_place(address_of(to[member].data())), from.size());
    for (uint32_t peer = 1; member == 0 && peer < to.size(); ++peer)
      out.offer(peer, 0, client_place(address_of(from.data())), from.size());
    return out;
  }
  std::vector<uint8_t> from;
  std::vector<std::vector<uint8_t>> to;
};

TEST(Standing, NamesWhoHasNotPosted) {
  Cluster cluster(2, 4, 1);  // ranks 0 and 2 on one node, 1 and 3 on the other
  const auto team = cluster.make_team({0, 1, 2, 3}, 1);
  Blocks blocks(4, 100);
  const auto standing = [&](uint32_t member) { return cluster.engine_of(member).standing(team[member], 0); };
  for (const uint32_t member : {1U, 2U}) cluster.engine_of(member).post(team[member], 0, blocks.graph(member), 1);
  cluster.settle();
  // Of a member of another worker nobody knows.
  EXPECT_EQ(standing(1).waits, Waits::silent);
  EXPECT_EQ(standing(1).members, Members{0});
  const bool together = cluster.engine_index(2) == cluster.engine_index(0);
  EXPECT_EQ(standing(2).waits, together ? Waits::not_posted : Waits::silent);
  EXPECT_EQ(standing(2).members, Members{0});
  cluster.engine_of(0).post(team[0], 0, blocks.graph(0), 1);
  cluster.settle();
  EXPECT_EQ(standing(1).waits, Waits::nothing);  // has ended
  EXPECT_EQ(standing(0).waits, Waits::silent);   // 3 did not ask for its block
  EXPECT_EQ(standing(0).members, Members{3});
  cluster.engine_of(3).post(team[3], 0, blocks.graph(3), 1);
  cluster.settle();
  for (uint32_t member = 0; member < 4; ++member) {
    EXPECT_EQ(standing(member).waits, Waits::nothing);
    EXPECT_EQ(cluster.outcome(member, 1), OFFPATH_OK);
  }
}

TEST(Standing, TellsBlocksUnderWayFromSilence) {
  Cluster cluster(2, 2, 1);
  const auto team = cluster.make_team({0, 1}, 1);
  Blocks blocks(2, 64 * 100);
  for (const uint32_t member : {0U, 1U}) cluster.engine_of(member).post(team[member], 0, blocks.graph(member), 1);
  std::set<Waits> sender, receiver;
  while (!cluster.outcome(0, 1) || !cluster.outcome(1, 1)) {
    cluster.step();
    sender.insert(cluster.engine_of(0).standing(team[0], 0).waits);
    receiver.insert(cluster.engine_of(1).standing(team[1], 0).waits);
  }
  EXPECT_TRUE(sender.contains(Waits::takes));
  EXPECT_TRUE(receiver.contains(Waits::sends));
  EXPECT_EQ(cluster.engine_of(0).traffic().sent_bytes, blocks.from.size());
  EXPECT_EQ(cluster.engine_of(1).traffic().received_bytes, blocks.from.size());
}

TEST(Standing, OwnWorkAndEarlierOperations) {
  Cluster cluster(1, 1, 1);
  const auto team = cluster.make_team({0}, 1);
  std::vector<uint8_t> from(640, 1), to(640);
  for (uint64_t sequence : {0, 1}) {
    Graph graph;
    graph.copy(client_place(address_of(from.data())), client_place(address_of(to.data())), from.size());
    graph.in_order = true;
    cluster.engine_of(0).post(team[0], sequence, std::move(graph), sequence);
  }
  EXPECT_EQ(cluster.engine_of(0).standing(team[0], 0).waits, Waits::service);
  EXPECT_EQ(cluster.engine_of(0).standing(team[0], 1).waits, Waits::earlier);
  cluster.settle();
  EXPECT_EQ(cluster.engine_of(0).standing(team[0], 1).waits, Waits::nothing);
  EXPECT_EQ(cluster.engine_of(0).traffic().local_bytes, 1280U);
}

TEST(Standing, NamesOnlyTheFirstOfMany) {
  constexpr uint32_t kRanks = 20;
  Cluster cluster(1, kRanks, 1, Cluster::small_chunks(), memory::make_direct(), 1);
  std::vector<uint32_t> all(kRanks);
  for (uint32_t i = 0; i < kRanks; ++i) all[i] = i;
  const auto team = cluster.make_team(all, 1);
  Blocks blocks(kRanks, 100);
  cluster.engine_of(0).post(team[0], 0, blocks.graph(0), 1);
  cluster.settle();
  const Standing standing = cluster.engine_of(0).standing(team[0], 0);
  EXPECT_EQ(standing.waits, Waits::not_posted);
  EXPECT_EQ(standing.count, kRanks - 1);
  EXPECT_EQ(standing.members, (Members{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(Standing, UnknownTeamsAndSequences) {
  Cluster cluster(1, 1, 1);
  const auto team = cluster.make_team({0}, 1);
  EXPECT_EQ(cluster.engine_of(0).standing(team[0], 7).waits, Waits::nothing);
  EXPECT_EQ(cluster.engine_of(0).standing(team[0] + 1, 0).waits, Waits::nothing);
}

}  // namespace
}  // namespace offpath::testing
