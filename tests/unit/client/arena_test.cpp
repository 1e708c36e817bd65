// SPDX-License-Identifier: BSD-3-Clause
// Arena: pieces do not overlap, come back, and running out is a 0, not a crash.
#include "client/arena.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <random>
#include <vector>

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

TEST(Arena, KnowsWhatItCouldEverHold) {
  const Arena arena(kBegin, kEnd);
  EXPECT_TRUE(arena.could_hold(1));
  EXPECT_TRUE(arena.could_hold(1 << 20));
  for (const uint64_t bytes : {(uint64_t{1} << 20) + 1, uint64_t{1} << 40, UINT64_MAX}) {
    EXPECT_FALSE(arena.could_hold(bytes)) << bytes;
  }
}

TEST(Arena, PiecesGivenBackMakeRoomForOtherSizes) {
  Arena arena(kBegin, kEnd);
  for (const uint64_t bytes : {uint64_t{64}, uint64_t{1} << 20, uint64_t{5000}, uint64_t{1} << 19, uint64_t{64}}) {
    std::vector<uint64_t> pieces;
    for (uint64_t offset = arena.allocate(bytes); offset != 0; offset = arena.allocate(bytes)) pieces.push_back(offset);
    ASSERT_EQ(pieces.size(), (1U << 20) / std::bit_ceil(bytes)) << bytes;
    for (const uint64_t offset : pieces) arena.release(offset, bytes);
  }
}

TEST(Arena, OnlyNeighboursArePutTogether) {
  Arena arena(kBegin, kEnd);
  std::vector<uint64_t> pieces;
  for (int i = 0; i < 4; ++i) pieces.push_back(arena.allocate(1 << 18));
  arena.release(pieces[0], 1 << 18);
  arena.release(pieces[2], 1 << 18);
  EXPECT_EQ(arena.allocate(1 << 19), 0U);
  arena.release(pieces[1], 1 << 18);
  EXPECT_EQ(arena.allocate(1 << 19), pieces[0]);
  EXPECT_EQ(arena.allocate(1 << 18), pieces[2]);
  EXPECT_EQ(arena.allocate(1), 0U);
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
