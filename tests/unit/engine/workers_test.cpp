// SPDX-License-Identifier: BSD-3-Clause
// Services with several workers: what only they have. That all else is the same is seen by running the whole suite with
// OFFPATH_TEST_WORKERS.
#include "cluster.hpp"
#include "exchange.hpp"
#include "taken_back.hpp"

#include <numeric>

namespace offpath::testing {
namespace {

using Bytes = std::vector<uint8_t>;

// Ranks that send each other blocks, which say from whom they are.
struct Exchanges {
  Exchanges(uint32_t nodes, uint32_t ranks, uint32_t workers, uint64_t seed)
      : cluster(nodes, ranks, seed, Cluster::small_chunks(), memory::make_direct(), workers) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      send.emplace_back(ranks * kBytes, static_cast<uint8_t>(1 + rank));
      recv.emplace_back(ranks * kBytes);
    }
  }
  void post(const std::vector<uint32_t>& members, const std::vector<engine::TeamHandle>& team, uint64_t sequence,
            uint64_t context) {
    for (uint32_t i = 0; i < members.size(); ++i) {
      const uint32_t rank = members[i];
      cluster.engine_of(rank).post(team[i], sequence,
                                   alltoall_graph(i, static_cast<uint32_t>(members.size()),
                                                  address_of(send[rank].data()), address_of(recv[rank].data()), kBytes),
                                   context);
    }
  }
  void expect_blocks(const std::vector<uint32_t>& members, uint32_t rank) const {
    for (uint32_t i = 0; i < members.size(); ++i) {
      const auto block = recv[rank].begin() + static_cast<std::ptrdiff_t>(i * kBytes);
      EXPECT_EQ(Bytes(block, block + kBytes), Bytes(kBytes, static_cast<uint8_t>(1 + members[i])))
          << "from " << members[i] << " to " << rank;
    }
  }
  static constexpr size_t kBytes = 500;
  Cluster cluster;
  std::vector<Bytes> send, recv;
};

TEST(Workers, WhatTheySayToEachOtherStaysInTheNode) {
  for (const uint32_t workers : {2U, 3U, 5U}) {
    Exchanges all(1, 7, workers, workers);
    const std::vector<uint32_t> members = {6, 0, 3, 1, 5, 2, 4};
    all.post(members, all.cluster.make_team(members, 1), 0, 0);
    all.cluster.settle();
    for (const uint32_t rank : members) {
      EXPECT_EQ(all.cluster.outcome(rank, 0), OFFPATH_OK);
      all.expect_blocks(members, rank);
      EXPECT_TRUE(all.cluster.fabric_of(rank).sent.empty());
    }
  }
}

// The connection of one worker of each node breaks, at any moment. Those behind it are lost, and all of the team are
// told; nobody waits for ever, nothing wrong is taken for right, and teams that do not need the connection go on.
TEST(Workers, AConnectionThatBreaksConcernsOnlyThoseBehindIt) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Exchanges all(2, 8, 2, seed);
    Cluster& c = all.cluster;
    const std::vector<uint32_t> everybody = {0, 1, 2, 3, 4, 5, 6, 7};
    std::vector<uint32_t> apart;  // without those of node 1 behind the connection
    for (const uint32_t rank : everybody) {
      if (c.engine_index(rank) != c.engine_index(1)) apart.push_back(rank);
    }
    const auto team = c.make_team(everybody, 1), others = c.make_team(apart, 2);
    all.post(everybody, team, 0, 100);
    for (uint64_t i = 0; i < 3 * seed; ++i) c.step();
    c.part(0, 1);
    c.settle();
    for (const uint32_t rank : everybody) {
      const auto outcome = c.outcome(rank, 100);
      ASSERT_TRUE(outcome.has_value()) << rank;
      if (*outcome == OFFPATH_OK) all.expect_blocks(everybody, rank);
      for (const auto& [context, lost] : c.lost_members(rank)) {
        const uint32_t at = c.engine_index(lost);
        EXPECT_TRUE(at == c.engine_index(0) || at == c.engine_index(1)) << rank << " has lost " << lost;
      }
    }
    for (Bytes& into : all.recv) std::fill(into.begin(), into.end(), 0);
    all.post(apart, others, 0, 200);
    c.settle();
    for (const uint32_t rank : apart) {
      EXPECT_EQ(c.outcome(rank, 200), OFFPATH_OK) << rank;
      all.expect_blocks(apart, rank);
    }
  }
}

// An operation that fails gives its buffers back at once: what another worker still reads from them is not taken for
// data.
TEST(Workers, WhatWasOfferedIsNotTakenAfterAFailure) {
  expect_whole_or_failed(2000, [](uint64_t seed, auto&) {  // 0 and 2 have a service, 1 another one
    return std::make_unique<Cluster>(2, 3, seed, Cluster::small_chunks(), memory::make_direct(), 2);
  });
}

}  // namespace
}  // namespace offpath::testing
