// SPDX-License-Identifier: BSD-3-Clause
// Teams on networks with a queue, with bad links, and with both: each task loses what such a network loses at its rate, chunk by
// chunk from a seed.
#include "multicast/rate.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace offpath::multicast {
namespace {

constexpr uint32_t kChunks = 350;  // of a task, at all nodes

struct Net {
  double room = 1;  // part of the link's rate that passes
  double bad = 0;   // of the chunks, at any rate
  double lost_at(double part) const { return 1 - std::min(1.0, room / part) * (1 - bad); }
};

class Team {
 public:
  explicit Team(uint64_t seed) : random_(seed) {}
  struct Mean {
    double part = 0, lost = 0;
  };
  Mean run(const Net& net, int tasks) {
    Mean mean;
    for (int i = 0; i < tasks; ++i) {
      const double loss = net.lost_at(rate.part());
      const uint32_t lost = std::binomial_distribution<uint32_t>(kChunks, loss)(random_);
      mean.part += rate.part() / tasks;
      mean.lost += static_cast<double>(lost) / kChunks / tasks;
      rate.note(lost, kChunks);
    }
    return mean;
  }
  Rate rate;

 private:
  std::mt19937_64 random_;
};

void for_seeds(const std::function<void(Team& team)>& what) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Team team(seed);
    what(team);
  }
}

TEST(Rates, AFullQueueMakesSendersSlower) {
  for (const double room : {0.55, 0.65, 0.8, 0.95}) {
    for_seeds([room](Team& team) {
      team.run({room, 0}, 20);
      const auto [part, lost] = team.run({room, 0}, 400);
      EXPECT_LT(part, room * 1.02) << room;
      EXPECT_GT(part, room * 0.75) << room;
      EXPECT_LT(lost, 0.03) << room;
    });
  }
}

TEST(Rates, ABadLinkDoesNot) {
  for (const double bad : {0.002, 0.01, 0.02, 0.05, 0.1, 0.3}) {
    for_seeds([bad](Team& team) { EXPECT_GT(team.run({1, bad}, 60).part, 0.8) << bad; });
  }
}

TEST(Rates, BothAreToldFromEachOther) {
  for (const double bad : {0.01, 0.05}) {
    for_seeds([bad](Team& team) {
      const Net net{0.6, bad};
      team.run(net, 20);
      const auto [part, lost] = team.run(net, 400);
      EXPECT_LT(part, 0.6 * 1.1) << bad;
      EXPECT_GT(part, 0.6 * 0.7) << bad;
      EXPECT_LT(lost, bad + 0.06) << bad;
    });
  }
}

TEST(Rates, WhatHasPassedIsForgotten) {
  for_seeds([](Team& team) {
    team.run({0.55, 0}, 60);
    EXPECT_LT(team.rate.part(), 0.65);
    team.run({1, 0.005}, 60);  // it has room again, but is not without losses
    EXPECT_GT(team.rate.part(), 0.7);
    team.run({1, 0.1}, 60);  // what a bad link has lost says nothing
    team.run({1, 0}, 30);
    team.run({0.6, 0}, 40);  // about a queue
    EXPECT_LT(team.rate.part(), 0.7);
  });
}

TEST(Rates, IsNeverLessThanAQuarter) {
  Rate rate;
  for (uint32_t i = 0; i < 1000; ++i) {
    rate.note(kChunks * (i % 5) / 10, kChunks);
    EXPECT_GE(rate.part(), Rate::kSlowest);
    EXPECT_LE(rate.part(), 1);
  }
}

TEST(Rates, FewChunksSayNothing) {
  Rate rate;
  for (uint64_t i = 0; i + 1 < Rate::kJudged; ++i) rate.note(1, 1);
  EXPECT_TRUE(rate.works());
  EXPECT_EQ(rate.part(), 1);
  rate.note(1, 1);
  EXPECT_FALSE(rate.works()) << "all of them were lost";
}

TEST(Rates, HalfOfTheChunksIsEnough) {
  Rate rate;
  rate.note(128, 256);
  EXPECT_TRUE(rate.works());
  rate.note(129, 256);
  EXPECT_FALSE(rate.works());
  for (int i = 0; i < 10; ++i) rate.note(0, 256);
  EXPECT_FALSE(rate.works()) << "given up for good";
}

}  // namespace
}  // namespace offpath::multicast
