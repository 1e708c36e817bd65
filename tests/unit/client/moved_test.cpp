// SPDX-License-Identifier: BSD-3-Clause
// The pure parts of moving: what an operation names, how often that was used, what is still there.
#include "client/moved/memory_kind.hpp"
#include "client/moved/uses.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <cstdlib>

namespace offpath::client::moved {
namespace {

offpath_block_t block(uint64_t address, uint64_t bytes, uint32_t layout = 0) {
  return {0, 0, reinterpret_cast<const void*>(address), bytes, layout};
}

TEST(Extents, BlocksThatAdjoinAreOneStretchOfWholePages) {
  Named named;
  const offpath_block_t blocks[] = {block(0x30000, 0x10000), block(0x10010, 0x10000), block(0x20010, 0xFFF0),
                                    block(0x90000, 0x8000), block(0, 0)};
  add_blocks(blocks, nullptr, false, named);
  EXPECT_EQ(named.all.size(), 4U);
  ASSERT_EQ(named.dense.size(), 1U);  // the last is too short
  EXPECT_EQ(named.dense[0], (Extent{0x11000, 0x40000}));
}

TEST(Extents, MemoryInPassingIsNamedButNotMoved) {
  Named named;
  const offpath_block_t one = block(0x100000, 0x100000);
  add_blocks({&one, 1}, nullptr, true, named);
  EXPECT_EQ(named.all, Extents{(Extent{0x100000, 0x200000})});
  EXPECT_TRUE(named.dense.empty());
}

TEST(Extents, LayoutsAreNamedWithTheirGaps) {
  const offpath_range_t ranges[] = {{64, 8}, {0, 8}};
  offpath_layout_t layout{};
  layout.size_bytes = 16;
  layout.extent_bytes = -4096;
  layout.ranges = ranges;
  layout.ranges_count = 2;
  Named named;
  const offpath_block_t one = block(0x100000, 3 * 16, 1);
  add_blocks({&one, 1}, &layout, false, named);
  EXPECT_EQ(named.all, Extents{(Extent{0x100000 - 2 * 4096, 0x100048})});
  EXPECT_TRUE(named.dense.empty());
  layout.extent_bytes = INT64_MIN;
  const offpath_block_t wild = block(0x100000, uint64_t{1} << 60, 1);
  Named anything;
  add_blocks({&wild, 1}, &layout, false, anything);
  EXPECT_EQ(anything.all, Extents{(Extent{0, UINT64_MAX})});
}

// Rows of a matrix that are blocks for several peers: whose columns, does not matter.
TEST(Extents, LayoutsThatFillPagesTogetherAreDense) {
  std::vector<offpath_range_t> rows;
  for (int64_t row = 0; row < 64; ++row) rows.push_back({row * 4096, 1024});
  offpath_layout_t layout{};
  layout.size_bytes = 64 * 1024;
  layout.extent_bytes = 64 * 4096;
  layout.ranges = rows.data();
  layout.ranges_count = 64;
  std::vector<offpath_block_t> columns;
  for (uint64_t column = 0; column < 4; ++column) columns.push_back(block(0x100000 + column * 1024, 64 * 1024, 1));
  Named named;
  add_blocks(columns, &layout, false, named);
  EXPECT_EQ(named.dense, Extents{(Extent{0x100000, 0x140000})});
  Named gaps;
  add_blocks(std::span(columns).first(3), &layout, false, gaps);
  EXPECT_TRUE(gaps.dense.empty());
  const offpath_block_t many = block(0x100000, 17 * 64 * 1024, 1);
  Named too_many;
  add_blocks({&many, 1}, &layout, false, too_many);
  EXPECT_TRUE(too_many.dense.empty());
}

TEST(Extents, PagesInsideAreWhole) {
  EXPECT_EQ(pages_inside({0x1001, 0x3FFF}), (Extent{0x2000, 0x3000}));
  EXPECT_EQ(pages_inside({0x1000, 0x3000}), (Extent{0x1000, 0x3000}));
  EXPECT_EQ(pages_inside({0x1001, 0x2FFF}), Extent{});
  EXPECT_EQ(pages_inside({UINT64_MAX - 8, UINT64_MAX}), Extent{});
}

TEST(Extents, WhatLiesInOthersIsTakenAway) {
  const Extent others[] = {{0, 10}, {20, 30}, {30, 35}, {90, 200}};
  EXPECT_EQ(minus({5, 100}, others), (Extents{{10, 20}, {35, 90}}));
  EXPECT_EQ(minus({20, 35}, others), Extents{});
  EXPECT_EQ(minus({40, 50}, others), (Extents{{40, 50}}));
}

TEST(Uses, AStretchIsDueWhenItWasUsedOftenEnough) {
  Uses uses(3);
  const Extent one{0x1000, 0x2000}, other{0x1000, 0x3000};
  EXPECT_FALSE(uses.count(one));
  EXPECT_FALSE(uses.count(other));
  EXPECT_FALSE(uses.count(one));
  EXPECT_TRUE(uses.count(one));
  EXPECT_TRUE(uses.count(one));
  uses.forget(one);
  EXPECT_FALSE(uses.count(one));
  uses.refuse(other);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(uses.count(other));
}

TEST(Uses, WhatWasNotUsedForLongestIsForgotten) {
  Uses uses(2);
  const auto stretch = [](uint64_t i) { return Extent{i * 0x10000, i * 0x10000 + 0x1000}; };
  EXPECT_FALSE(uses.count(stretch(1)));
  for (uint64_t i = 2; i <= Uses::kEntries; ++i) uses.count(stretch(i));
  EXPECT_TRUE(uses.count(stretch(1)));
  uses.count(stretch(Uses::kEntries + 1));  // instead of 2
  EXPECT_FALSE(uses.count(stretch(2)));
  EXPECT_TRUE(uses.count(stretch(1)));
}

TEST(StillThere, OnlyMappingsOfTheRightPagesCount) {
  const Extent pages{0x10000, 0x20000};
  const Mapped mapped[] = {{{0x8000, 0x12000}, 0x500000 - 0x8000},  // reaches in from before
                           {{0x12000, 0x14000}, 0x502000},          // and on
                           {{0x13000, 0x14000}, 0x503000},          // seen twice
                           {{0x15000, 0x16000}, 0x900000},          // other pages of the file
                           {{0x18000, 0x30000}, 0x508000}};
  EXPECT_EQ(still_there(pages, 0x500000, mapped), (Extents{{0x10000, 0x14000}, {0x18000, 0x20000}}));
  EXPECT_TRUE(still_there(pages, 0x500000, {}).empty());
}

TEST(MemoryKind, OnlyPlainMemoryIsPlain) {
  constexpr size_t kBytes = 64 * kPage;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto at = reinterpret_cast<uint64_t>(memory);
  const Extent pages{at, at + kBytes};
  EXPECT_TRUE(is_plain(pages));
  ASSERT_EQ(mprotect(static_cast<char*>(memory) + 8 * kPage, kPage, PROT_READ), 0);
  EXPECT_FALSE(is_plain(pages));
  EXPECT_TRUE(is_plain({at, at + 8 * kPage}));
  munmap(memory, kBytes);
  EXPECT_FALSE(is_plain(pages));
  static char variable[kPage];
  const auto own = reinterpret_cast<uint64_t>(variable);
  EXPECT_FALSE(is_plain({own / kPage * kPage, own / kPage * kPage + kPage}));
  char local = 0;
  const auto stack = reinterpret_cast<uint64_t>(&local) / kPage * kPage;
  EXPECT_FALSE(is_plain({stack, stack + kPage}));
  std::vector<Mapped> mapped;
  EXPECT_TRUE(find_mapped(1, 1, {}, mapped));
  EXPECT_TRUE(mapped.empty());
  EXPECT_GT(objects_changed(), 0U);
}

}  // namespace
}  // namespace offpath::client::moved
