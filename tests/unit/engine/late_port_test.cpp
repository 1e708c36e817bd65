// SPDX-License-Identifier: BSD-3-Clause
// Memory that answers later, at moments that the test chooses. The other tests run with such memory as well
// (OFFPATH_TEST_PORT=late).
#include "late_port.hpp"

#include "cluster.hpp"
#include "exchange.hpp"
#include "ops/onesided/target.hpp"

#include <algorithm>

namespace offpath::testing {
namespace {

using Bytes = std::vector<uint8_t>;
constexpr size_t kLongBytes = 8000;  // longer than what is pushed

class Late : public ::testing::Test {
 protected:
  // 0 sends a block to 1, on another node; everything but the accesses is done.
  void send() {
    graph::Graph zero, one;
    zero.offer(1, 0, graph::client_place(address_of(from.data())), kLongBytes);
    one.pull(0, 0, graph::client_place(address_of(to.data())), kLongBytes);
    cluster.engine_of(0).post(team[0], 0, std::move(zero), 0);
    cluster.engine_of(1).post(team[1], 0, std::move(one), 0);
    cluster.settle();
  }
  void do_accesses() {
    while (port->step()) cluster.settle();
  }

  Bytes from = Bytes(kLongBytes, 7), to = Bytes(kLongBytes, 0);
  std::shared_ptr<LatePort> port = std::make_shared<LatePort>(memory::make_direct(), 1);
  Cluster cluster{2, 2, 1, {}, port};
  std::vector<engine::TeamHandle> team = cluster.make_team({0, 1}, 1);
};

TEST_F(Late, NothingEndsBeforeTheMemoryHasAnswered) {
  send();
  EXPECT_EQ(cluster.outcome(0, 0), std::nullopt);
  EXPECT_EQ(cluster.outcome(1, 0), std::nullopt);
  do_accesses();
  EXPECT_EQ(cluster.outcome(0, 0), OFFPATH_OK);
  EXPECT_EQ(cluster.outcome(1, 0), OFFPATH_OK);
  EXPECT_EQ(to, from);
}

TEST_F(Late, AnOperationThatIsGivenUpWaitsForItsAccesses) {
  send();
  cluster.cut_node(1);
  cluster.settle();
  EXPECT_EQ(cluster.lost_members(0).size(), 1U);
  EXPECT_EQ(cluster.outcome(0, 0), std::nullopt) << "its buffer is being read";
  do_accesses();
  EXPECT_TRUE(cluster.outcome(0, 0).value_or(OFFPATH_OK) < 0);
}

TEST_F(Late, AClientMayGoMeanwhile) {
  send();
  cluster.kill_client(0);
  cluster.settle();
  do_accesses();
  EXPECT_EQ(cluster.outcome(0, 0), std::nullopt) << "there is nobody to be told";
  EXPECT_EQ(cluster.outcome(1, 0), OFFPATH_ERR_PEER_LOST);
}

// Every rank adds 1 to a number of rank 0, many times, and sees another number each time; puts and gets in between.
TEST(LateUpdates, AreAtomicAndInOrder) {
  constexpr uint32_t kRanks = 4;
  constexpr uint64_t kEach = 60;
  auto port = std::make_shared<LatePort>(memory::make_direct(), 3);
  Cluster cluster(2, kRanks, 3, {}, port);
  const auto team = cluster.make_team({0, 1, 2, 3}, 1);
  uint64_t words[2] = {0, 0};
  ops::onesided::Target target(
      [&](graph::RequestId id, graph::Answer answer) { cluster.engine_of(0).answer(id, std::move(answer)); });
  ASSERT_TRUE(target.open(1, 1001, 5, address_of(words), sizeof(words), false).ok());
  cluster.engine_of(0).set_responder(&target);
  std::vector<uint64_t> seen(kRanks * kEach, UINT64_MAX), read(kRanks * kEach, UINT64_MAX);
  const uint64_t one = 1;
  std::vector<uint64_t> marks(kRanks * kEach);
  for (uint64_t i = 0; i < kRanks * kEach; ++i) {
    const auto rank = static_cast<uint32_t>(i % kRanks);
    marks[i] = i + 1;
    const auto ask = [&](offpath_remote_kind_t kind, uint64_t offset, const uint64_t* data, uint64_t* result,
                         uint64_t context) {
      ops::onesided::Remote remote;
      remote.wanted.window = 5, remote.wanted.kind = kind, remote.wanted.offset = offset, remote.wanted.bytes = 8;
      if (remote::accumulates(kind)) remote.wanted.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_U64};
      remote::encode(remote.wanted, {}, remote.body);
      remote.send = {0, 0, address_of(data), 8}, remote.result = {0, 0, address_of(result), 8};
      cluster.engine_of(rank).post_request(team[rank], ops::onesided::make_request(std::move(remote)), context);
    };
    ask(OFFPATH_GET_ACCUMULATE, 0, &one, &seen[i], 3 * i);
    ask(OFFPATH_PUT, 8, &marks[i], nullptr, 3 * i + 1);
    ask(OFFPATH_GET, 0, nullptr, &read[i], 3 * i + 2);
    if (i % 7 == 0) port->step(), cluster.step();
  }
  for (bool more = true; more;) {
    cluster.settle();
    more = port->step();
  }
  EXPECT_EQ(words[0], kRanks * kEach);
  EXPECT_NE(words[1], 0U);
  for (uint64_t i = 0; i < 3 * kRanks * kEach; ++i) {
    ASSERT_EQ(cluster.outcome(static_cast<uint32_t>(i / 3 % kRanks), i), OFFPATH_OK) << i;
  }
  for (uint64_t i = kRanks; i < seen.size(); ++i) EXPECT_GT(seen[i], seen[i - kRanks]) << "of one origin in order";
  std::sort(seen.begin(), seen.end());
  for (uint64_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i) << "an addition was lost";
  EXPECT_TRUE(target.close(1, 1001, 5, [] {}).ok());
}

}  // namespace
}  // namespace offpath::testing
