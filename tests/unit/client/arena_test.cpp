// SPDX-License-Identifier: BSD-3-Clause
// Arena: pieces do not overlap, come back, and running out is a 0, not a crash.
#include "client/arena.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace offpath::client {
namespace {

constexpr uint64_t kBegin = 139264;
constexpr uint64_t kEnd = kBegin + (1 << 20);

TEST(Arena, PiecesAreAlignedAndInside) {
  Arena arena(kBegin, kEnd);
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{63}, uint64_t{64}, uint64_t{65}, uint64_t{4097}, uint64_t{0}}) {
    const uint64_t offset = arena.allocate(bytes);
    EXPECT_GE(offset, kBegin) << bytes;
    EXPECT_LE(offset + bytes, kEnd) << bytes;
    EXPECT_EQ(offset % 64, 0U) << bytes;
  }
}

TEST(Arena, TooMuchIsRefusedWithoutHarm) {
  Arena arena(kBegin, kEnd);
  for (const uint64_t bytes :
       {(uint64_t{1} << 20) + 1, uint64_t{1} << 39, uint64_t{1} << 40, (uint64_t{1} << 63) + 1, UINT64_MAX}) {
    EXPECT_EQ(arena.allocate(bytes), 0U) << bytes;
  }
  EXPECT_EQ(arena.allocate(1 << 20), kBegin) << "all of it is still there";
  EXPECT_EQ(arena.allocate(1), 0U);
}

TEST(Arena, ReleasedPiecesAreUsedAgain) {
  Arena arena(kBegin, kEnd);
  const uint64_t whole = arena.allocate(1 << 20);
  arena.release(whole, 1 << 20);
  EXPECT_EQ(arena.allocate((1 << 19) + 1), whole) << "same size class";
  arena.release(0, 4096);  // nothing was allocated, nothing is released
  EXPECT_EQ(arena.allocate(4096), 0U);
}

TEST(Arena, LivePiecesNeverOverlap) {
  Arena arena(kBegin, kEnd);
  std::mt19937_64 random(5);
  std::map<uint64_t, uint64_t> live;  // offset -> bytes
  for (int i = 0; i < 50000; ++i) {
    if (!live.empty() && random() % 2 == 0) {
      auto victim = live.begin();
      std::advance(victim, static_cast<long>(random() % live.size()));
      arena.release(victim->first, victim->second);
      live.erase(victim);
      continue;
    }
    const uint64_t bytes = 1 + random() % 5000;
    const uint64_t offset = arena.allocate(bytes);
    if (offset == 0) continue;
    ASSERT_GE(offset, kBegin);
    ASSERT_LE(offset + bytes, kEnd);
    const auto next = live.lower_bound(offset);
    ASSERT_TRUE(next == live.end() || offset + bytes <= next->first);
    ASSERT_TRUE(next == live.begin() || std::prev(next)->first + std::prev(next)->second <= offset);
    live[offset] = bytes;
  }
}

}  // namespace
}  // namespace offpath::client
