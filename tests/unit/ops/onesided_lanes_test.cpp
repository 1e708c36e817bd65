// SPDX-License-Identifier: BSD-3-Clause
// The target without an engine: lanes that long operations hold, and locks.
#include "onesided_target.hpp"

namespace offpath::ops::onesided {
namespace {

TEST_F(OnesidedTarget, LongAccumulatesHoldTheLane) {
  constexpr uint64_t kLong = 4096;
  std::vector<uint64_t> large(kLong / 8);
  ASSERT_TRUE(target_.open(kClient, kTeam, kWindow, reinterpret_cast<uint64_t>(large.data()), kLong, false).ok());
  EXPECT_EQ(ask(sum(0, kLong)).kind, Answer::Kind::graph);
  const RequestId first = last_;
  EXPECT_EQ(ask(sum(0, 8, 10)).kind, Answer::Kind::later);
  const RequestId second = last_;
  EXPECT_EQ(ask(sum(0, kLong), 1).kind, Answer::Kind::later);
  const RequestId third = last_;
  EXPECT_EQ(ask(sum(8, 8, 100)).kind, Answer::Kind::later);
  const RequestId fourth = last_;
  EXPECT_EQ(ask(put(16, {7})).kind, Answer::Kind::reply) << "puts do not wait";
  EXPECT_EQ(large[0], 0U);
  target_.on_answered(kClient, kTeam, first, {});
  EXPECT_EQ(answered(second), OFFPATH_OK);
  EXPECT_EQ(large[0], 10U);
  ASSERT_EQ(answers_.count(third), 1U);
  EXPECT_EQ(answers_.at(third).kind, Answer::Kind::graph);
  EXPECT_EQ(answers_.count(fourth), 0U);
  target_.on_answered(kClient, kTeam, third, base::Status::error(OFFPATH_ERR_PEER_LOST, "lost"));
  EXPECT_EQ(large[1], 100U) << "also after a failure";
  EXPECT_EQ(ask(sum(0, 8)).kind, Answer::Kind::reply) << "free again";
}

TEST_F(OnesidedTarget, OnesWhoseOriginIsLostLeaveTheLane) {
  constexpr uint64_t kLong = 4096;
  std::vector<uint64_t> large(kLong / 8);
  ASSERT_TRUE(target_.open(kClient, kTeam, kWindow, reinterpret_cast<uint64_t>(large.data()), kLong, false).ok());
  ask(sum(0, kLong));
  const RequestId first = last_;
  ask(sum(0, 8), 1);
  const RequestId second = last_;
  ask(sum(0, 8), 2);
  const RequestId third = last_;
  target_.on_answered(kClient, kTeam, second, base::Status::error(OFFPATH_ERR_PEER_LOST, "lost"));
  target_.on_answered(kClient, kTeam, first, {});
  EXPECT_EQ(answers_.count(second), 0U);
  EXPECT_EQ(answered(third), OFFPATH_OK);
  EXPECT_EQ(large[0], 1U);
}

TEST_F(OnesidedTarget, ClosingWaitsForGraphsAndRefusesWhatWaits) {
  constexpr uint64_t kLong = 4096;
  std::vector<uint64_t> large(kLong / 8);
  ASSERT_TRUE(target_.open(kClient, kTeam, kWindow, reinterpret_cast<uint64_t>(large.data()), kLong, false).ok());
  ask(sum(0, kLong));
  const RequestId accumulate = last_;
  Body get = of_kind(OFFPATH_GET);
  get.bytes = kLong;
  EXPECT_EQ(ask(get).kind, Answer::Kind::graph);
  const RequestId second = last_;
  ask(sum(0, 8));
  const RequestId waiting = last_;
  EXPECT_EQ(ask(of_kind(OFFPATH_LOCK_EXCLUSIVE), 0).kind, Answer::Kind::reply);
  EXPECT_EQ(ask(of_kind(OFFPATH_LOCK_SHARED), 1).kind, Answer::Kind::later);
  const RequestId lock = last_;
  int released = 0;
  EXPECT_TRUE(target_.close(kClient, kTeam, kWindow, [&] { ++released; }).ok());
  EXPECT_EQ(answered(waiting), OFFPATH_ERR_RANGE);
  EXPECT_EQ(answered(lock), OFFPATH_ERR_RANGE);
  EXPECT_EQ(ask(sum(0, 8)).status.code(), OFFPATH_ERR_RANGE);
  EXPECT_EQ(released, 0);
  target_.on_answered(kClient, kTeam, second, {});
  EXPECT_EQ(released, 0);
  target_.on_answered(kClient, kTeam, accumulate, {});
  EXPECT_EQ(released, 1);
  EXPECT_EQ(large[0], 0U);
}

TEST_F(OnesidedTarget, EveryRegionOfALongOneIsHeld) {
  constexpr uint64_t kHalf = 4096;
  std::vector<uint8_t> large(2 * kHalf);
  const auto at = reinterpret_cast<uint64_t>(large.data());
  ASSERT_TRUE(target_.open(kClient, kTeam, kWindow, 0, 0, true).ok());
  for (const uint64_t half : {at, at + kHalf}) ASSERT_TRUE(target_.attach(kClient, kTeam, kWindow, half, kHalf).ok());
  EXPECT_EQ(ask(sum(at, 2 * kHalf)).kind, Answer::Kind::graph);
  int released = 0;
  for (const uint64_t half : {at + kHalf, at}) {
    EXPECT_TRUE(target_.detach(kClient, kTeam, kWindow, half, [&] { ++released; }).ok());
  }
  EXPECT_EQ(released, 0);
  target_.on_answered(kClient, kTeam, last_, {});
  EXPECT_EQ(released, 2);
}

TEST_F(OnesidedTarget, ClientsThatGoAreForgotten) {
  constexpr uint64_t kLong = 4096;
  std::vector<uint64_t> large(kLong / 8);
  ASSERT_TRUE(target_.open(kClient, kTeam, kWindow, reinterpret_cast<uint64_t>(large.data()), kLong, false).ok());
  ask(sum(0, kLong));
  const RequestId graph = last_;
  ask(sum(0, 8));
  target_.remove_client(kClient);
  target_.on_answered(kClient, kTeam, graph, base::Status::error(OFFPATH_ERR_PEER_LOST, "lost"));
  EXPECT_TRUE(answers_.empty());
  EXPECT_EQ(ask(sum(0, 8)).status.code(), OFFPATH_ERR_RANGE);
}

TEST_F(OnesidedTarget, LocksAreGrantedInTheOrderOfAsking) {
  open();
  std::map<uint32_t, RequestId> asked;
  const auto lock = [&](uint32_t from, offpath_remote_kind_t kind) {
    const Answer answer = ask(of_kind(kind), from);
    asked[from] = last_;
    return answer.kind == Answer::Kind::later ? OFFPATH_IN_PROGRESS : answer.status.code();
  };
  const auto unlock = [&](uint32_t from) { return ask(of_kind(OFFPATH_UNLOCK), from).status.code(); };
  EXPECT_EQ(unlock(0), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(lock(0, OFFPATH_LOCK_SHARED), OFFPATH_OK);
  EXPECT_EQ(lock(0, OFFPATH_LOCK_SHARED), OFFPATH_ERR_ARGUMENT) << "twice";
  EXPECT_EQ(lock(1, OFFPATH_LOCK_SHARED), OFFPATH_OK);
  EXPECT_EQ(lock(2, OFFPATH_LOCK_EXCLUSIVE), OFFPATH_IN_PROGRESS);
  EXPECT_EQ(lock(3, OFFPATH_LOCK_SHARED), OFFPATH_IN_PROGRESS) << "not past the exclusive one";
  EXPECT_EQ(lock(4, OFFPATH_LOCK_SHARED), OFFPATH_IN_PROGRESS);
  EXPECT_EQ(lock(5, OFFPATH_LOCK_EXCLUSIVE), OFFPATH_IN_PROGRESS);
  EXPECT_EQ(lock(5, OFFPATH_LOCK_EXCLUSIVE), OFFPATH_ERR_ARGUMENT) << "waits already";
  asked[5] -= 1;
  EXPECT_EQ(unlock(3), OFFPATH_ERR_ARGUMENT) << "does not hold it yet";
  EXPECT_EQ(unlock(0), OFFPATH_OK);
  EXPECT_EQ(answered(asked[2]), OFFPATH_IN_PROGRESS);
  EXPECT_EQ(unlock(1), OFFPATH_OK);
  EXPECT_EQ(answered(asked[2]), OFFPATH_OK);
  EXPECT_EQ(answered(asked[3]), OFFPATH_IN_PROGRESS);
  target_.lose_member(kClient, kTeam, 2);  // while it holds the lock
  EXPECT_EQ(answered(asked[3]), OFFPATH_OK);
  EXPECT_EQ(answered(asked[4]), OFFPATH_OK);
  EXPECT_EQ(answered(asked[5]), OFFPATH_IN_PROGRESS);
  EXPECT_EQ(lock(6, OFFPATH_LOCK_SHARED), OFFPATH_IN_PROGRESS);
  target_.lose_member(kClient, kTeam + 1, 5);  // of another team
  target_.lose_member(kClient, kTeam, 5);      // while it waits
  EXPECT_EQ(answered(asked[5]), OFFPATH_IN_PROGRESS) << "nobody to be told";
  EXPECT_EQ(answered(asked[6]), OFFPATH_OK);
}

}  // namespace
}  // namespace offpath::ops::onesided
