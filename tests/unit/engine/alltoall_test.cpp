// SPDX-License-Identifier: BSD-3-Clause
// Random alltoallv programs on 1 to 64 ranks over loopback, byte-exact against a reference computed from the same
// counts: several teams, many operations outstanding, members posting in their own time, teams joined late.
#include "cluster.hpp"
#include "exchange.hpp"

#include <algorithm>
#include <numeric>

namespace offpath::testing {
namespace {

struct Exchange {
  std::vector<std::vector<uint64_t>> counts;               // [from][to]
  std::vector<std::vector<uint8_t>> send, recv, expected;  // by member
  std::vector<std::vector<int64_t>> send_displs, recv_displs;
};

// Blocks in a random order with gaps between them, so that displacements are neither sorted nor dense.
std::vector<int64_t> scatter_blocks(std::mt19937_64& random, const std::vector<uint64_t>& counts, uint64_t& total) {
  std::vector<size_t> order(counts.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<int64_t> displs(counts.size());
  total = 0;
  for (const size_t i : order) {
    total += random() % 5;
    displs[i] = static_cast<int64_t>(total);
    total += counts[i];
  }
  return displs;
}

Exchange make_exchange(std::mt19937_64& random, size_t size, uint64_t largest) {
  Exchange x;
  x.counts.assign(size, std::vector<uint64_t>(size));
  for (auto& row : x.counts) {
    for (auto& count : row) count = random() % 3 == 0 ? 0 : random() % (largest + 1);
  }
  x.send.resize(size), x.recv.resize(size), x.expected.resize(size);
  x.send_displs.resize(size), x.recv_displs.resize(size);
  for (size_t i = 0; i < size; ++i) {
    uint64_t total = 0;
    x.send_displs[i] = scatter_blocks(random, x.counts[i], total);
    x.send[i].resize(total + 1);
    const uint64_t letters = random() % 2 == 0 ? 256 : 2;  // some can be compressed
    for (auto& byte : x.send[i]) byte = static_cast<uint8_t>(random() % letters);
    std::vector<uint64_t> column(size);
    for (size_t j = 0; j < size; ++j) column[j] = x.counts[j][i];
    x.recv_displs[i] = scatter_blocks(random, column, total);
    x.recv[i].assign(total + 1, 0xEE);
    x.expected[i] = x.recv[i];
  }
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j < size; ++j) {
      std::copy_n(x.send[j].begin() + x.send_displs[j][i], x.counts[j][i], x.expected[i].begin() + x.recv_displs[i][j]);
    }
  }
  return x;
}

graph::Graph expand(const Exchange& x, uint32_t member) {
  std::vector<uint64_t> column;
  for (const auto& row : x.counts) column.push_back(row[member]);
  return alltoallv_graph({member, address_of(x.send[member].data()), address_of(x.recv[member].data()),
                          x.counts[member], column, x.send_displs[member], x.recv_displs[member]});
}

struct RandomTeam {
  std::vector<uint32_t> members;
  uint8_t id;
  std::vector<engine::TeamHandle> handles;  // 0: not joined yet
  std::vector<size_t> posted;               // operations posted by each member
  std::vector<Exchange> exchanges;
};

void run_random_program(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto ranks = static_cast<uint32_t>(1 + random() % 64);
  const auto nodes = static_cast<uint32_t>(1 + random() % std::min<uint32_t>(ranks, 8));
  engine::Config config = Cluster::small_chunks();
  if (random() % 3 != 0)
    config.chunk_bytes = 300, config.batched_bytes = random() % 200, config.pushed_bytes = random() % 300;
  std::shared_ptr<memory::Port> memory = memory::make_direct();
  if (random() % 2 == 0) memory = std::make_shared<FarMemory>();
  Cluster cluster(nodes, ranks, seed, config, memory);
  std::vector<RandomTeam> teams(1 + random() % 3);
  size_t todo = 0;
  for (size_t t = 0; t < teams.size(); ++t) {
    std::vector<uint32_t> all(ranks);
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), random);
    all.resize(1 + random() % ranks);
    RandomTeam& team = teams[t];
    team.members = all;
    team.id = static_cast<uint8_t>(t + 1);
    team.handles.assign(all.size(), 0);
    team.posted.assign(all.size(), 0);
    const size_t operations = 1 + random() % 4;
    const uint64_t largest = all.size() > 16 ? 90 : 700;
    for (size_t k = 0; k < operations; ++k) team.exchanges.push_back(make_exchange(random, all.size(), largest));
    todo += all.size() * operations;
  }
  while (todo > 0) {
    for (int i = static_cast<int>(random() % 20); i > 0; --i) cluster.step();
    RandomTeam& team = teams[random() % teams.size()];
    const auto member = static_cast<uint32_t>(random() % team.members.size());
    if (team.handles[member] == 0) team.handles[member] = cluster.join_team(team.members, team.id, member);
    const size_t sequence = team.posted[member];
    if (sequence == team.exchanges.size()) continue;
    ++team.posted[member];
    --todo;
    cluster.engine_of(team.members[member])
        .post(team.handles[member], sequence, expand(team.exchanges[sequence], member), team.id * 100u + sequence);
  }
  cluster.settle();
  for (const RandomTeam& team : teams) {
    for (size_t k = 0; k < team.exchanges.size(); ++k) {
      for (uint32_t member = 0; member < team.members.size(); ++member) {
        ASSERT_EQ(cluster.outcome(team.members[member], team.id * 100u + k), OFFPATH_OK) << "seed " << seed;
        ASSERT_EQ(team.exchanges[k].recv[member], team.exchanges[k].expected[member]) << "seed " << seed;
        const graph::Graph graph = expand(team.exchanges[k], member);
        const Cluster::Told& told = cluster.told(team.members[member], team.id * 100u + k);
        ASSERT_EQ(told.steps, graph.steps.size()) << "seed " << seed;
        ASSERT_EQ(told.served, graph.exports.size()) << "seed " << seed;
      }
    }
  }
  EXPECT_EQ(cluster.in_flight(), 0u) << "seed " << seed;
}

class RandomPrograms : public ::testing::TestWithParam<uint64_t> {};
TEST_P(RandomPrograms, MatchTheReference) {
  for (uint64_t i = 0; i < 5; ++i) run_random_program(GetParam() * 1000 + i);
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, ::testing::Range<uint64_t>(1, 21));

// Posts one alltoall of `bytes` per peer on a team of everybody; returns the buffers.
struct Simple {
  std::vector<std::vector<uint8_t>> send, recv;
};
Simple post_alltoall(Cluster& cluster, const std::vector<engine::TeamHandle>& team, uint64_t sequence, size_t bytes,
                     const std::set<uint32_t>& absent = {}) {
  const uint32_t size = cluster.ranks();
  Simple buffers{std::vector(size, std::vector<uint8_t>(size * bytes)),
                 std::vector(size, std::vector<uint8_t>(size * bytes))};
  for (uint32_t rank = 0; rank < size; ++rank) {
    for (size_t i = 0; i < buffers.send[rank].size(); ++i) buffers.send[rank][i] = static_cast<uint8_t>(rank * 31 + i);
    if (absent.contains(rank)) continue;
    cluster.engine_of(rank).post(
        team[rank], sequence,
        alltoall_graph(rank, size, address_of(buffers.send[rank].data()), address_of(buffers.recv[rank].data()), bytes),
        sequence);
  }
  return buffers;
}

TEST(Alltoall, MovesBlocksOfManyChunks) {
  Cluster cluster(3, 6, 7);
  const auto team = cluster.make_team(everybody(6), 1);
  const Simple b = post_alltoall(cluster, team, 0, 1000);
  cluster.settle();
  for (uint32_t i = 0; i < 6; ++i) {
    ASSERT_EQ(cluster.outcome(i, 0), OFFPATH_OK);
    for (uint32_t j = 0; j < 6; ++j) {
      ASSERT_TRUE(
          std::equal(b.recv[i].begin() + j * 1000, b.recv[i].begin() + (j + 1) * 1000, b.send[j].begin() + i * 1000));
    }
  }
}

TEST(Alltoall, LateRankDelaysOnlyThoseThatWaitForIt) {
  Cluster cluster(4, 4, 11);
  const auto team = cluster.make_team(everybody(4), 1);
  std::vector<std::vector<uint8_t>> send(4, std::vector<uint8_t>(40, 5)), recv(4, std::vector<uint8_t>(40));
  // Member 3 gives to nobody and takes from nobody but itself: it may come last, or never.
  const auto counts = [](uint32_t rank) {
    return rank == 3 ? std::vector<uint64_t>{0, 0, 0, 10} : std::vector<uint64_t>{10, 10, 10, 0};
  };
  const std::vector<int64_t> displs{0, 10, 20, 30};
  for (uint32_t rank = 0; rank < 3; ++rank) {
    cluster.engine_of(rank).post(team[rank], 0,
                                 alltoallv_graph({rank, address_of(send[rank].data()), address_of(recv[rank].data()),
                                                  counts(rank), counts(rank), displs, displs}),
                                 0);
  }
  cluster.settle();
  for (uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(cluster.outcome(rank, 0), OFFPATH_OK);
}

TEST(Alltoall, WaitsForAnAbsentRank) {
  Cluster cluster(2, 3, 13);
  const auto team = cluster.make_team(everybody(3), 1);
  const Simple b = post_alltoall(cluster, team, 0, 100, {2});
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, 0), std::nullopt);
  EXPECT_EQ(cluster.outcome(1, 0), std::nullopt);
}

TEST(Alltoall, SenderOfTooMuchIsTruncatedAtTheReceiver) {
  Cluster cluster(2, 2, 17);
  const auto team = cluster.make_team(everybody(2), 1);
  std::vector<uint8_t> a(100, 1), b(100, 2), ra(100), rb(100);
  const std::vector<int64_t> displs{0, 50};
  const std::vector<uint64_t> fifty{50, 50}, forty{40, 50};
  cluster.engine_of(0).post(
      team[0], 0, alltoallv_graph({0, address_of(a.data()), address_of(ra.data()), fifty, fifty, displs, displs}), 0);
  cluster.engine_of(1).post(
      team[1], 0, alltoallv_graph({1, address_of(b.data()), address_of(rb.data()), fifty, forty, displs, displs}), 0);
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, 0), OFFPATH_OK);
  EXPECT_EQ(cluster.outcome(1, 0), OFFPATH_ERR_TRUNCATED);
  EXPECT_EQ(std::count(rb.begin(), rb.begin() + 50, 0), 50) << "nothing may be written";
}

TEST(Alltoall, SenderOfLessIsAccepted) {
  for (const uint32_t nodes : {1u, 2u}) {
    Cluster cluster(nodes, 2, 19);
    const auto team = cluster.make_team(everybody(2), 1);
    std::vector<uint8_t> a(100, 1), b(100, 2), ra(100), rb(100);
    const std::vector<int64_t> displs{0, 50};
    const std::vector<uint64_t> none{50, 0}, fifty{50, 50};
    cluster.engine_of(0).post(
        team[0], 0, alltoallv_graph({0, address_of(a.data()), address_of(ra.data()), none, fifty, displs, displs}), 0);
    cluster.engine_of(1).post(
        team[1], 0, alltoallv_graph({1, address_of(b.data()), address_of(rb.data()), fifty, fifty, displs, displs}), 0);
    cluster.settle();
    EXPECT_EQ(cluster.outcome(0, 0), OFFPATH_OK);
    EXPECT_EQ(cluster.outcome(1, 0), OFFPATH_OK);
  }
}

}  // namespace
}  // namespace offpath::testing
