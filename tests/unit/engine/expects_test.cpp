// SPDX-License-Identifier: BSD-3-Clause
// Whether much is under way, which is what a worker asks before it naps.
#include "cluster.hpp"

namespace offpath::testing {
namespace {

using graph::client_place;
using graph::Graph;

// Long vectors travel as many short blocks: what counts is all of them together.
TEST(Expects, AddsUpTheBlocksUnderWay) {
  constexpr uint32_t kBlocks = 8;
  constexpr uint64_t kBytes = 1024;
  Cluster cluster(2, 2, 1);
  const auto team = cluster.make_team({0, 1}, 1);
  std::vector<uint8_t> from(kBlocks * kBytes, 7), to(kBlocks * kBytes);
  Graph sends, receives;
  for (uint32_t i = 0; i < kBlocks; ++i) {
    sends.offer(1, i, client_place(address_of(&from[i * kBytes])), kBytes);
    receives.pull(0, i, client_place(address_of(&to[i * kBytes])), kBytes);
  }
  EXPECT_FALSE(cluster.engine_of(0).expects(1));
  cluster.engine_of(0).post(team[0], 0, std::move(sends), 1);
  cluster.engine_of(1).post(team[1], 0, std::move(receives), 1);
  bool much_to_send = false, much_to_receive = false;
  while (!cluster.outcome(0, 1) || !cluster.outcome(1, 1)) {
    cluster.step();
    much_to_send |= cluster.engine_of(0).expects(4 * kBytes);
    much_to_receive |= cluster.engine_of(1).expects(2 * kBytes);
    EXPECT_FALSE(cluster.engine_of(0).expects(kBlocks * kBytes + 1));
    EXPECT_FALSE(cluster.engine_of(1).expects(kBlocks * kBytes + 1));
  }
  EXPECT_TRUE(much_to_send);
  EXPECT_TRUE(much_to_receive);
  EXPECT_FALSE(cluster.engine_of(0).expects(1));
  EXPECT_FALSE(cluster.engine_of(1).expects(1));
  EXPECT_EQ(from, to);
}

}  // namespace
}  // namespace offpath::testing
