// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lanes/told.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace offpath::mpi {
namespace {

TEST(Told, KnowsWhatWasNotedInAnyOrder) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    Told told;
    std::set<uint64_t> noted;
    const uint64_t spread = 1 + random() % 600;
    for (uint64_t next = 0; next < 3000; ++next) {
      const uint64_t sequence = next + random() % spread;  // some twice, some never
      told.note(sequence);
      noted.insert(sequence);
      if (next % 97 != 0) continue;
      // Never fewer than were noted; more only beyond the bits.
      uint64_t first_gap = 0;
      while (noted.contains(first_gap)) ++first_gap;
      for (uint64_t at = 0; at < 4000; ++at) {
        if (noted.contains(at) || at < first_gap + Told::kBits) ASSERT_EQ(told.has(at), noted.contains(at)) << at;
      }
    }
  }
}

TEST(Told, CountsWhatIsFarAheadAsAllBeforeIt) {
  Told told;
  told.note(5000);
  EXPECT_FALSE(told.has(0));
  EXPECT_FALSE(told.has(Told::kBits - 1));
  EXPECT_TRUE(told.has(4000));
  EXPECT_TRUE(told.has(5000));
  EXPECT_FALSE(told.has(5001));
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
      if (noted.contains(at)) ASSERT_TRUE(ours.has(at)) << at;
      if (!before.has(at) && !theirs.has(at)) ASSERT_FALSE(ours.has(at)) << at;
    }
  }
}

}  // namespace
}  // namespace offpath::mpi
