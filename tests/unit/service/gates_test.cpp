// SPDX-License-Identifier: BSD-3-Clause
// What waits behind a gate of a team: in the order of posting, each team by itself, and what a failure spoils.
#include "service/gates.hpp"

#include <gtest/gtest.h>

#include <string>

namespace offpath::service {
namespace {

using session::OpKind;
using Verdict = Gates::Verdict;

class Gated : public ::testing::Test {
 protected:
  static constexpr uint64_t kTeam = 4096, kOther = 8192;
  // Slots of those of the team that may begin now, in their order; a gate with a bar.
  std::string begun(uint64_t team) {
    std::string out;
    while (const auto held = gates_.next(team))
      out += std::to_string(held->slot) + (held->kind == OpKind::gate ? "| " : " ");
    return out;
  }

  tasks::Order order_{session::kSlotCount};
  Gates gates_{order_};
};

TEST_F(Gated, NothingWaitsWithoutAGate) {
  EXPECT_FALSE(gates_.hold(kTeam, OpKind::collective, 1));
  EXPECT_FALSE(gates_.any());
  EXPECT_FALSE(gates_.is_held(1));
  EXPECT_EQ(begun(kTeam), "");
}

TEST_F(Gated, WhatIsBehindAGateBeginsInItsOrder) {
  EXPECT_TRUE(gates_.add(kTeam, 1, Verdict::waits));
  EXPECT_TRUE(gates_.hold(kTeam, OpKind::collective, 2));
  EXPECT_FALSE(gates_.add(kTeam, 3, Verdict::waits));
  EXPECT_TRUE(gates_.hold(kTeam, OpKind::remote, 4));
  EXPECT_FALSE(gates_.hold(kOther, OpKind::collective, 5)) << "of another team";
  EXPECT_EQ(begun(kTeam), "");
  gates_.open(3, true);
  EXPECT_EQ(gates_.take_opened(), kTeam);
  EXPECT_FALSE(gates_.take_opened());
  EXPECT_EQ(begun(kTeam), "") << "the first one is closed";
  EXPECT_TRUE(gates_.is_held(2));
  gates_.open(1, true);
  EXPECT_TRUE(gates_.any_opened());
  EXPECT_EQ(begun(kTeam), "1| 2 3| 4 ");
  EXPECT_FALSE(gates_.is_held(2));
  EXPECT_FALSE(gates_.any());
}

TEST_F(Gated, AGateThatIsOpenLetsThrough) {
  EXPECT_TRUE(gates_.add(kTeam, 1, Verdict::ready));
  EXPECT_TRUE(gates_.hold(kTeam, OpKind::collective, 2));
  EXPECT_EQ(begun(kTeam), "1| 2 ");
}

TEST_F(Gated, AFailureSpoilsTheNextOperationOfTheTeam) {
  gates_.add(kTeam, 1, Verdict::waits);
  gates_.add(kOther, 2, Verdict::fails);
  gates_.open(1, false);
  EXPECT_EQ(begun(kTeam), "1| ");
  EXPECT_FALSE(gates_.hold(kTeam, OpKind::collective, 3)) << "it takes part, but does nothing";
  EXPECT_TRUE(gates_.take_spoilt(kTeam));
  EXPECT_FALSE(gates_.take_spoilt(kTeam));
  EXPECT_FALSE(gates_.take_spoilt(kOther)) << "not yet";
  EXPECT_EQ(begun(kOther), "2| ");
  EXPECT_TRUE(gates_.take_spoilt(kOther));
  EXPECT_FALSE(gates_.any());
}

TEST_F(Gated, WhatComesAfterAHeldOperationComesAfterItsGate) {
  const tasks::Order::Range same{4096, 8, true};
  const uint32_t writer[] = {7}, held[] = {2};
  ASSERT_EQ(order_.begin(7, {}, {&same, 1}).verdict, Verdict::ready);
  gates_.add(kTeam, 1, order_.begin(1, writer, {}).verdict);
  order_.begin_other(2);
  gates_.hold(kTeam, OpKind::collective, 2);
  EXPECT_EQ(order_.begin(3, held, {&same, 1}).verdict, Verdict::waits) << "it comes after the writer, too";
}

TEST_F(Gated, ATeamThatGoesTakesWhatItHasAlong) {
  gates_.add(kTeam, 1, Verdict::waits);
  gates_.hold(kTeam, OpKind::collective, 2);
  gates_.remove_team(kTeam);
  EXPECT_FALSE(gates_.is_held(1) || gates_.is_held(2) || gates_.any());
  gates_.open(1, true);
  EXPECT_FALSE(gates_.any_opened());
  EXPECT_EQ(begun(kTeam), "");
}

}  // namespace
}  // namespace offpath::service
