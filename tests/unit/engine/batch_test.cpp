// SPDX-License-Identifier: BSD-3-Clause
// How many fabric messages leave: many small ones to one worker as one, a single one as itself, long ones alone.
#include "cluster.hpp"
#include "exchange.hpp"

#include <algorithm>
#include <numeric>

namespace offpath::testing {
namespace {

using graph::client_place;
using graph::Graph;
using wire::Kind;
using Bytes = std::vector<uint8_t>;

// Runs an exchange of everybody and checks it; returns the fabric messages of all nodes.
std::vector<Kind> exchange(Cluster& cluster, const std::vector<engine::TeamHandle>& team, size_t bytes,
                           uint64_t sequence = 0) {
  const uint32_t size = cluster.ranks();
  std::vector<Bytes> send(size, Bytes(size * bytes)), recv = send;
  for (uint32_t rank = 0; rank < size; ++rank) {
    cluster.fabric_of(rank).sent.clear();
    for (size_t i = 0; i < send[rank].size(); ++i) send[rank][i] = static_cast<uint8_t>(rank * 31 + i);
  }
  for (uint32_t rank = 0; rank < size; ++rank) {
    cluster.engine_of(rank).post(
        team[rank], sequence,
        alltoall_graph(rank, size, address_of(send[rank].data()), address_of(recv[rank].data()), bytes), sequence);
  }
  cluster.settle();
  std::vector<Kind> sent;
  for (uint32_t node = 0; node < size && cluster.node_index(node) == node; ++node) {
    const auto& here = cluster.fabric_of(node).sent;
    sent.insert(sent.end(), here.begin(), here.end());
  }
  for (uint32_t i = 0; i < size; ++i) {
    EXPECT_EQ(cluster.outcome(i, sequence), OFFPATH_OK);
    for (uint32_t j = 0; j < size; ++j) {
      EXPECT_TRUE(std::equal(send[j].data() + i * bytes, send[j].data() + (i + 1) * bytes, recv[i].data() + j * bytes));
    }
  }
  return sent;
}

// Blocks that are short enough to be pushed are not here: this is about the messages of pulls.
engine::Config no_pushes() {
  engine::Config config;
  config.pushed_bytes = 0;
  return config;
}

std::vector<engine::TeamHandle> everybody(Cluster& cluster) {
  std::vector<uint32_t> all(cluster.ranks());
  std::iota(all.begin(), all.end(), 0);
  return cluster.make_team(all, 1);
}

TEST(Batching, ManySmallMessagesShareFewFabricMessages) {
  Cluster cluster(2, 32, 3, no_pushes());
  const auto team = everybody(cluster);
  const auto sent = exchange(cluster, team, 50);
  // 16 x 16 pairs each way, each with a pull, a chunk and a done, and a hello before: 2048 by themselves.
  // Memory that answers later spreads them over many rounds.
  EXPECT_LT(sent.size(), 2048U / (ports_are_late() ? 2 : 8));
  EXPECT_GT(std::count(sent.begin(), sent.end(), Kind::batch), 0);
}

// Rank 1 has asked before rank 0 posts: what rank 0 asks for in turn does not wait behind the block for rank 1.
TEST(Batching, WhatIsAskedForLeavesBeforeBlocks) {
  constexpr size_t kBytes = 100 << 10;
  Cluster cluster(2, 2, 3, no_pushes());
  const auto team = everybody(cluster);
  const Bytes send(2 * kBytes);
  Bytes recv[2] = {send, send};
  for (const uint32_t rank : {1, 0}) {
    cluster.settle();
    cluster.fabric_of(0).sent.clear();
    cluster.engine_of(rank).post(
        team[rank], 0, alltoall_graph(rank, 2, address_of(send.data()), address_of(recv[rank].data()), kBytes), 0);
  }
  cluster.settle();
  const auto& sent = cluster.fabric_of(0).sent;
  const auto first = [&](Kind kind) { return std::find(sent.begin(), sent.end(), kind); };
  // With the hello of its first operation.
  EXPECT_LT(first(Kind::batch), first(Kind::data));
}

TEST(Batching, AllOfARoundLeavesWithIt) {
  Cluster cluster(2, 12, 3, no_pushes(), memory::make_direct(), 1);
  const auto team = everybody(cluster);
  Bytes send(12 * 10), recv(12 * 10);
  for (uint32_t rank = 0; rank < 12; rank += 2) {
    cluster.engine_of(rank).post(team[rank], 0,
                                 alltoall_graph(rank, 12, address_of(send.data()), address_of(recv.data()), 10), 0);
  }
  EXPECT_TRUE(cluster.fabric_of(0).sent.empty());
  cluster.engine_of(0).progress();
  EXPECT_EQ(cluster.fabric_of(0).sent, std::vector<Kind>{Kind::batch})
      << "72 hellos and pulls: no more than a batch may hold";
  EXPECT_FALSE(cluster.engine_of(0).progress() && cluster.fabric_of(0).sent.size() > 1);
}

TEST(Batching, ASingleMessageLeavesAsItself) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    Cluster cluster(2, 2, seed, no_pushes());
    const auto team = everybody(cluster);
    exchange(cluster, team, 10);  // hellos are said
    Bytes from(10, 3), to(10);
    Graph sender, receiver;
    sender.offer(1, 0, client_place(address_of(from.data())), 10);
    receiver.pull(0, 0, client_place(address_of(to.data())), 10);
    cluster.fabric_of(0).sent.clear(), cluster.fabric_of(1).sent.clear();
    cluster.engine_of(0).post(team[0], 1, std::move(sender), 1);
    cluster.engine_of(1).post(team[1], 1, std::move(receiver), 1);
    cluster.settle();
    EXPECT_EQ(cluster.outcome(1, 1), OFFPATH_OK);
    EXPECT_EQ(cluster.fabric_of(0).sent, std::vector<Kind>{Kind::data});
    EXPECT_EQ(cluster.fabric_of(1).sent, (std::vector<Kind>{Kind::pull, Kind::done}));
  }
}

TEST(Batching, AnEmptyBlockNeedsNoDone) {
  Cluster cluster(2, 2, 1, no_pushes());
  const auto team = everybody(cluster);
  exchange(cluster, team, 10);
  Graph sender, receiver;
  sender.offer(1, 0, {}, 0);
  receiver.pull(0, 0, {}, 0);
  cluster.fabric_of(0).sent.clear(), cluster.fabric_of(1).sent.clear();
  cluster.engine_of(0).post(team[0], 1, std::move(sender), 1);
  cluster.engine_of(1).post(team[1], 1, std::move(receiver), 1);
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, 1), OFFPATH_OK);
  EXPECT_EQ(cluster.outcome(1, 1), OFFPATH_OK);
  EXPECT_EQ(cluster.fabric_of(0).sent, std::vector<Kind>{Kind::data});
  EXPECT_EQ(cluster.fabric_of(1).sent, std::vector<Kind>{Kind::pull});
}

TEST(Batching, LongPiecesGoAlone) {
  Cluster cluster(2, 2, 4, no_pushes());
  const auto team = everybody(cluster);
  const engine::Config config;
  const auto sent = exchange(cluster, team, 3 * config.chunk_bytes);
  const auto pieces = std::count(sent.begin(), sent.end(), Kind::data);
  EXPECT_EQ(pieces, ports_are_late() ? 14 : 6);  // those grow first, and shrink at the end
}

TEST(Batching, CanBeLeftOutForData) {
  engine::Config config = no_pushes();
  config.batched_bytes = 0;
  Cluster cluster(2, 8, 4, config, memory::make_direct(), 1);
  const auto team = everybody(cluster);
  const auto sent = exchange(cluster, team, 50);
  EXPECT_EQ(std::count(sent.begin(), sent.end(), Kind::data), 2 * 4 * 4);
}

// More peers than buffers: what finds none goes by itself, and a full buffer leaves at once.
TEST(Batching, AShortPoolIsEnough) {
  for (const uint32_t pool_chunks : {2u, 3u, 8u}) {
    for (const size_t chunk_bytes : {64, 200, 1000}) {
      engine::Config config;
      config.pushed_bytes = chunk_bytes / 2;
      config.pool_chunks = pool_chunks;
      config.chunk_bytes = chunk_bytes;
      Cluster cluster(6, 12, 5, config, std::make_shared<FarMemory>());
      const auto team = everybody(cluster);
      for (uint64_t sequence = 0; sequence < 3; ++sequence) exchange(cluster, team, 90 + 100 * sequence, sequence);
    }
  }
}

}  // namespace
}  // namespace offpath::testing
