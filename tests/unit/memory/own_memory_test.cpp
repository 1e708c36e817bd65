// SPDX-License-Identifier: BSD-3-Clause
// Memory that a service works on in place: its scratch, and what clients have mapped for it.
#include "memory/aliases.hpp"
#include "memory/port.hpp"
#include "memory/scratch.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

namespace offpath::memory {
namespace {

using Bytes = std::vector<uint8_t>;

uint64_t place_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

TEST(Scratch, IsBoundedMemoryWithAView) {
  const auto pool = std::make_shared<ScratchPool>(1 << 20);
  const auto scratch = pool->take(100000);
  ASSERT_NE(scratch, nullptr);
  uint8_t* view = scratch->view(0, 100000);
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(place_of(view) % 4096, 0U);
  Bytes data(1000, 5), back(1000);
  ASSERT_TRUE(scratch->write(99000, data.data(), 1000).ok());
  ASSERT_TRUE(scratch->read(back.data(), 99000, 1000).ok());
  EXPECT_EQ(back, data);
  EXPECT_EQ(scratch->view(99000, 1000), view + 99000);
  for (const uint64_t address : {uint64_t{1} << 20, uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 500}) {
    EXPECT_EQ(scratch->view(address, 1000), nullptr);
    EXPECT_EQ(scratch->write(address, data.data(), 1000).status().code(), OFFPATH_ERR_MEMORY_FAULT);
    EXPECT_EQ(scratch->read(back.data(), address, 1000).status().code(), OFFPATH_ERR_MEMORY_FAULT);
  }
  EXPECT_EQ(pool->take(uint64_t{1} << 62), nullptr);
  EXPECT_EQ(pool->take(UINT64_MAX), nullptr);
}

TEST(Scratch, BlocksAreRecycledUpToTheCap) {
  const auto pool = std::make_shared<ScratchPool>(1 << 20);
  auto block = pool->take(100000);
  const uint8_t* where = block->view(0, 1);
  auto reader = block;
  block.reset();
  EXPECT_EQ(pool->cached_bytes(), 0U) << "somebody still reads it";
  reader.reset();
  EXPECT_GE(pool->cached_bytes(), 100000U);
  EXPECT_EQ(pool->take(90000)->view(0, 1), where);
  {
    std::vector<std::shared_ptr<Port>> many;
    for (int i = 0; i < 50; ++i) many.push_back(pool->take(100000));
    many.push_back(pool->take(8 << 20));
  }
  EXPECT_LE(pool->cached_bytes(), uint64_t{1} << 20);
  EXPECT_GT(pool->cached_bytes(), 0U) << "one large block must not empty the pool";
}

TEST(Scratch, BlocksMayOutliveThePoolAndReturnFromAnyThread) {
  auto pool = std::make_shared<ScratchPool>(1 << 20);
  auto last = pool->take(1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([block = pool->take(1000)]() mutable {
      block->view(0, 1000)[0] = 1;
      block.reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  pool.reset();
  EXPECT_NE(last->view(0, 1), nullptr);
}

// Memory at 0x100000 to the client lies in its region from page 2 on.
TEST(Mapped, AliasesAreUsedInPlaceAndTheRestIsCopied) {
  constexpr uint64_t kPage = 4096;
  std::vector<uint8_t> region(8 * kPage), own(16, 7);
  const auto aliases = std::make_shared<Aliases>();
  const auto port = make_mapped({0x1000, region.size(), region.data(), nullptr}, make_direct(), aliases);
  EXPECT_EQ(port->view(0x100000, 1), nullptr);
  aliases->set({{0x50000, kPage, 0}, {0x100000, 3 * kPage, 2 * kPage}});
  EXPECT_EQ(port->view(0x100000, 3 * kPage), &region[2 * kPage]);
  EXPECT_EQ(port->view(0x102FFF, 1), &region[5 * kPage - 1]);
  EXPECT_EQ(port->view(0x102FFF, 2), nullptr);
  EXPECT_EQ(port->view(0xFFFFF, 2), nullptr);
  EXPECT_EQ(port->view(0x51000, 1), nullptr);
  EXPECT_EQ(port->view(UINT64_MAX, 1), nullptr);
  EXPECT_EQ(port->view(0x100000, UINT64_MAX), nullptr);
  EXPECT_EQ(port->view(0x1000, kPage), region.data()) << "the region itself";
  const uint64_t in_place = aliases->in_place_bytes();
  const uint8_t five[5] = {1, 2, 3, 4, 5};
  EXPECT_TRUE(port->write(0x100010, five, 5).ok());
  EXPECT_EQ(region[2 * kPage + 0x14], 5);
  EXPECT_EQ(aliases->in_place_bytes(), in_place + 5);
  EXPECT_EQ(aliases->copied_bytes(), 0U);
  uint8_t got[16] = {};
  EXPECT_TRUE(port->read(got, reinterpret_cast<uint64_t>(own.data()), 16).ok());
  EXPECT_EQ(got[15], 7);
  EXPECT_EQ(aliases->copied_bytes(), 16U);
  EXPECT_EQ(port->alike(0x100000, 4 * kPage), 3 * kPage);
  EXPECT_EQ(port->alike(0x102FFF, 5), 1U);
  EXPECT_EQ(port->alike(0x103000, 5), 5U);
  EXPECT_EQ(port->alike(0xFFFF0, kPage), 16U);
  EXPECT_EQ(port->alike(0x1000 + 7 * kPage, kPage), kPage);
  // Half of it lies in the client's own memory: only that is copied.
  std::vector<uint8_t> edge(2 * kPage, 9), out(2 * kPage);
  const auto at = reinterpret_cast<uint64_t>(edge.data());
  aliases->set({{at + 100, 200, 4 * kPage}});
  const uint64_t copied = aliases->copied_bytes(), in_place_before = aliases->in_place_bytes();
  std::vector<uint8_t> data(1000);
  std::iota(data.begin(), data.end(), uint8_t{1});
  EXPECT_TRUE(port->write(at, data.data(), 1000).ok());
  EXPECT_EQ(edge[99], data[99]);
  EXPECT_EQ(edge[100], 9);
  EXPECT_EQ(region[4 * kPage + 199], data[299]);
  EXPECT_EQ(edge[300], data[300]);
  EXPECT_TRUE(port->read(out.data(), at, 1000).ok());
  EXPECT_TRUE(std::equal(data.begin(), data.end(), out.begin()));
  EXPECT_EQ(aliases->copied_bytes() - copied, 1600U);
  EXPECT_EQ(aliases->in_place_bytes() - in_place_before, 400U);
  aliases->set({});
  EXPECT_EQ(port->view(0x100000, 1), nullptr);
}

// Of a layout only what lies elsewhere is left to the port behind.
TEST(Mapped, PiecesOfLayoutsAreUsedInPlace) {
  constexpr uint64_t kPage = 4096;
  std::vector<uint8_t> region(8 * kPage), own(4 * kPage), packed(300), out(300);
  const auto aliases = std::make_shared<Aliases>();
  const auto at = reinterpret_cast<uint64_t>(own.data());
  const auto port = make_mapped({1 << 20, region.size(), region.data(), nullptr}, make_direct(), aliases);
  aliases->set({{at + kPage, kPage, 3 * kPage}});
  std::iota(packed.begin(), packed.end(), uint8_t{1});
  const auto range = [](uint64_t address, uint64_t bytes) { return Range{static_cast<int64_t>(address), bytes}; };
  const auto move = [&](std::vector<Range> ranges, uint64_t copied, uint64_t in_place) {
    const uint64_t copied_before = aliases->copied_bytes(), in_place_before = aliases->in_place_bytes();
    EXPECT_TRUE(port->scatter(ranges, packed.data()).ok());
    std::fill(out.begin(), out.end(), uint8_t{0});
    EXPECT_TRUE(port->gather(out.data(), ranges).ok());
    EXPECT_TRUE(std::equal(out.begin(), out.begin() + 100, packed.begin()));
    EXPECT_EQ(aliases->copied_bytes() - copied_before, 2 * copied);
    EXPECT_EQ(aliases->in_place_bytes() - in_place_before, 2 * in_place);
  };
  move({range((1 << 20) + 50, 60), range((1 << 20) + 7 * kPage, 40)}, 0, 100);
  EXPECT_EQ(region[7 * kPage + 39], 100);
  move({range(at + kPage, 40), range(at + 2 * kPage - 60, 60)}, 0, 100);
  EXPECT_EQ(region[4 * kPage - 1], 100);
  move({range(at + 2 * kPage, 40), range(at + 3 * kPage, 60)}, 100, 0);
  EXPECT_EQ(own[3 * kPage + 59], 100);
  // Over both edges, in any order, and in both.
  move({range(at + 2 * kPage - 30, 50), range(at + kPage - 10, 25), range(at, 15), range((1 << 20) + 5, 10)}, 45, 55);
  EXPECT_EQ(region[4 * kPage - 1], 30);
  EXPECT_EQ(own[2 * kPage], 31);
  EXPECT_EQ(own[kPage - 1], 60);
  EXPECT_EQ(region[3 * kPage], 61);
  EXPECT_EQ(own[14], 90);
  EXPECT_EQ(region[14], 100);
  const auto beyond = {range(at, 10), range(UINT64_MAX - 5, 10)};
  EXPECT_FALSE(make_mapped({1 << 20, region.size(), region.data(), nullptr}, make_cma(getpid()), aliases)
                   ->gather(out.data(), std::vector<Range>(beyond))
                   .ok());
}

TEST(Mapped, WithoutARestThereIsNothingElse) {
  std::vector<uint8_t> region(4096), other(16);
  const auto port = make_mapped({1 << 20, region.size(), region.data(), nullptr}, nullptr);
  EXPECT_EQ(port->view((1 << 20) + 4090, 6), &region[4090]);
  EXPECT_EQ(port->view((1 << 20) + 4090, 7), nullptr);
  EXPECT_TRUE(port->read(other.data(), (1 << 20) + 4080, 16).ok());
  EXPECT_FALSE(port->read(other.data(), (1 << 20) + 4090, 16).ok());
  EXPECT_FALSE(port->write(reinterpret_cast<uint64_t>(other.data()), region.data(), 16).ok());
}

TEST(Mapped, AliasesChangeWhileOthersLookThemUp) {
  std::vector<uint8_t> region(1 << 16);
  const auto aliases = std::make_shared<Aliases>();
  const auto port = make_mapped({1, region.size(), region.data(), nullptr}, make_direct(), aliases);
  std::atomic<bool> over{false};
  std::thread reader([&] {
    while (!over) {
      const uint8_t* place = port->view(0x100000, 100);
      EXPECT_TRUE(place == nullptr || place == &region[0] || place == &region[4096]);
    }
  });
  for (uint64_t i = 0; i < 3000; ++i) aliases->set({{0x100000, 4096, i % 2 * 4096}}), aliases->set({});
  over = true;
  reader.join();
}

}  // namespace
}  // namespace offpath::memory
