// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lanes/told.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace offpath::mpi {
namespace {

TEST(Told, KnowsWhatWasNotedInAnyOrder) {
  std::mt19937 random(1);
  for (int round = 0; round < 40; ++round) {
    const size_t spread = 1 + random() % (round % 2 == 0 ? Told::kBits : 2500);
    std::vector<uint64_t> order(4000);
    std::iota(order.begin(), order.end(), 0);
    for (size_t at = 0; at < order.size(); at += spread) {
      std::shuffle(order.begin() + at, order.begin() + std::min(order.size(), at + spread), random);
    }
    Told told;
    std::set<uint64_t> noted;
    uint64_t first_gap = 0;
    bool exact = true;  // none was too far ahead
    for (size_t i = 0; i < order.size(); ++i) {
      exact = exact && order[i] < first_gap + Told::kBits;
      told.note(order[i]);
      noted.insert(order[i]);
      while (noted.contains(first_gap)) ++first_gap;
      if (i % 97 != 0) continue;
      for (uint64_t at = 0; at < 5000; ++at) {
        if (exact || noted.contains(at) || at > *noted.rbegin()) {
          ASSERT_EQ(told.has(at), noted.contains(at)) << at;
        }
      }
    }
    EXPECT_FALSE(told.has(order.size()));
  }
}

TEST(Told, CountsAllBetweenThoseFarAhead) {
  Told told;
  told.note(3000);
  told.note(5000);
  EXPECT_FALSE(told.has(0));
  EXPECT_FALSE(told.has(2999));
  EXPECT_TRUE(told.has(3000));
  EXPECT_TRUE(told.has(4000));
  EXPECT_TRUE(told.has(5000));
  EXPECT_FALSE(told.has(5001));
}

TEST(Told, ForgetsNothingWhenTheFirstIsToldLast) {
  Told told;
  for (uint64_t at = 1; at <= 1500; ++at) told.note(at);
  EXPECT_FALSE(told.has(0));
  told.note(0);
  for (uint64_t at = 0; at <= 1500; ++at) ASSERT_TRUE(told.has(at)) << at;
  EXPECT_FALSE(told.has(1501));
  for (uint64_t at = 1502; at <= 1600; ++at) told.note(at);
  EXPECT_FALSE(told.has(1501));
  EXPECT_FALSE(told.has(8000));
}

TEST(Told, AddsWhatOthersHave) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    Told ours, theirs;
    std::set<uint64_t> noted;
    for (Told* const told : {&ours, &theirs}) {
      const uint64_t all_before = random() % 1500;
      for (uint64_t at = 0; at < all_before; ++at) told->note(at), noted.insert(at);
      for (int some = 0; some < 20; ++some) {
        const uint64_t at = all_before + random() % 500;
        told->note(at);
        noted.insert(at);
      }
    }
    const Told before = ours;
    ours.add(theirs);
    for (uint64_t at = 0; at < 4000; ++at) {
      if (noted.contains(at)) {
        ASSERT_TRUE(ours.has(at)) << at;
      }
      if (!before.has(at) && !theirs.has(at)) {
        ASSERT_FALSE(ours.has(at)) << at;
      }
    }
  }
}

}  // namespace
}  // namespace offpath::mpi
