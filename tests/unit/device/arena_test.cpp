// SPDX-License-Identifier: BSD-3-Clause
#include "device/arena.hpp"

#include <gtest/gtest.h>

#include <random>

namespace offpath::device {
namespace {

constexpr uint64_t kBase = 0x7000'0000'0000;

TEST(DeviceArena, BlocksNeverOverlapAndAllComesBack) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  constexpr uint64_t kBytes = 1 << 20;
  Arena arena(kBase, kBytes);
  std::map<uint64_t, uint64_t> model;
  for (int step = 0; step < 20000; ++step) {
    if (random() % 2 == 0) {
      const uint64_t bytes = random() % (random() % 8 == 0 ? 100000 : 2000);
      const auto address = arena.allocate(bytes);
      if (!address) {
        EXPECT_LT(arena.largest_free(), std::max<uint64_t>(bytes, 64));
        continue;
      }
      EXPECT_EQ(*address % Arena::kAlignment, 0U);
      EXPECT_GE(*address, kBase);
      EXPECT_LE(*address + bytes, kBase + kBytes);
      const auto next = model.lower_bound(*address);
      if (next != model.end()) {
        EXPECT_LE(*address + std::max<uint64_t>(bytes, 1), next->first);
      }
      if (next != model.begin()) {
        EXPECT_GE(*address, std::prev(next)->first + std::max<uint64_t>(std::prev(next)->second, 1));
      }
      model.emplace(*address, bytes);
    } else if (!model.empty()) {
      auto victim = std::next(model.begin(), static_cast<ptrdiff_t>(random() % model.size()));
      EXPECT_TRUE(arena.release(victim->first));
      EXPECT_FALSE(arena.release(victim->first));
      model.erase(victim);
    }
  }
  for (const auto& [address, bytes] : model) EXPECT_TRUE(arena.release(address));
  EXPECT_EQ(arena.used(), 0U);
  EXPECT_EQ(arena.largest_free(), kBytes);
}

TEST(DeviceArena, ABlockFreedAndWantedAgainIsTheSame) {
  Arena arena(kBase, 1 << 20);
  const auto kept = arena.allocate(100);
  const auto first = arena.allocate(5000);
  ASSERT_TRUE(kept && first);
  EXPECT_TRUE(arena.release(*first));
  EXPECT_EQ(arena.allocate(5000), first);
}

TEST(DeviceArena, PagesGoBackWhenMuchWasFreed) {
  Arena arena(kBase, 64 << 20);
  const auto block = arena.allocate(40 << 20);
  ASSERT_TRUE(block);
  EXPECT_TRUE(arena.take_excess().empty());
  EXPECT_TRUE(arena.release(*block));
  uint64_t bytes = 0;
  for (const Span& span : arena.take_excess()) bytes += span.bytes;
  EXPECT_GE(bytes, 40U << 20);
  EXPECT_TRUE(arena.take_excess().empty());
}

TEST(DeviceArena, SizesThatAreTooLarge) {
  Arena arena(kBase, 1 << 20);
  EXPECT_FALSE(arena.allocate((1 << 20) + 1));
  EXPECT_FALSE(arena.allocate(UINT64_MAX));
  EXPECT_FALSE(arena.allocate(UINT64_MAX - 10));
  EXPECT_TRUE(arena.allocate(1 << 20));
  EXPECT_FALSE(arena.allocate(0));
}

}  // namespace
}  // namespace offpath::device
