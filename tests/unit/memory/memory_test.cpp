// SPDX-License-Identifier: BSD-3-Clause
// Port through layouts, by CMA (of this very process) and directly, against a list of byte addresses; scratch memory.
#include "memory/aliases.hpp"
#include "memory/port.hpp"
#include "memory/scratch.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <thread>

namespace offpath::memory {
namespace {

using Bytes = std::vector<uint8_t>;

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

std::shared_ptr<Port> make(const std::string& kind) {
  return kind == "cma" ? std::shared_ptr<Port>(make_cma(getpid())) : std::shared_ptr<Port>(make_direct());
}

class EachMemory : public ::testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<Port> memory = make(GetParam());
};

TEST_P(EachMemory, GathersAndScattersInOrder) {
  std::mt19937_64 random(1);
  for (const size_t count : {0, 1, 2, 1023, 1024, 1025, 5000}) {
    Bytes there(64 * 1024), here(64 * 1024), expected;
    for (uint8_t& byte : there) byte = static_cast<uint8_t>(random());
    std::vector<Range> ranges;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t bytes = random() % 12, at = (random() % 4096) * 12;
      ranges.push_back({static_cast<int64_t>(address_of(&there[at])), bytes});
      expected.insert(expected.end(), there.begin() + static_cast<std::ptrdiff_t>(at),
                      there.begin() + static_cast<std::ptrdiff_t>(at + bytes));
    }
    ASSERT_TRUE(memory->gather(here.data(), ranges).ok());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), here.begin()));
    for (size_t i = 0; i < expected.size(); ++i) here[i] = static_cast<uint8_t>(random());
    Bytes after = there;
    size_t from = 0;
    for (const Range& range : ranges) {
      memcpy(after.data() + (static_cast<uint64_t>(range.offset) - address_of(there.data())), &here[from], range.bytes);
      from += range.bytes;
    }
    ASSERT_TRUE(memory->scatter(ranges, here.data()).ok());
    EXPECT_EQ(there, after);
  }
}

// Byte i of elements of a layout, the slow way.
uint64_t address_of_byte(uint64_t base, const Layout& layout, uint64_t byte) {
  uint64_t within = byte % layout.size_bytes;
  size_t range = 0;
  while (within >= layout.ranges[range].bytes) within -= layout.ranges[range++].bytes;
  return base + byte / layout.size_bytes * static_cast<uint64_t>(layout.extent_bytes) +
         static_cast<uint64_t>(layout.ranges[range].offset) + within;
}

TEST_P(EachMemory, StridedMemoryIsItsBytesInOrder) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Layout layout;
    const size_t count = 1 + random() % 6;
    int64_t at = 0;
    for (size_t i = 0; i < count; ++i) {
      at += static_cast<int64_t>(random() % 5);
      layout.ranges.push_back({at, random() % 4 == 0 ? 0 : random() % 20});
      at += static_cast<int64_t>(layout.ranges.back().bytes);
      layout.size_bytes += layout.ranges.back().bytes;
    }
    if (layout.size_bytes == 0) continue;
    if (random() % 2 == 0) std::shuffle(layout.ranges.begin(), layout.ranges.end(), random);
    const uint64_t elements = 1 + random() % 400;
    layout.extent_bytes = at + static_cast<int64_t>(random() % 3);
    Bytes there(static_cast<size_t>(layout.extent_bytes) * (elements + 1));
    for (uint8_t& byte : there) byte = static_cast<uint8_t>(random());
    uint64_t base = address_of(there.data());
    if (random() % 3 == 0) {  // elements may follow each other downwards
      base += (elements - 1) * static_cast<uint64_t>(layout.extent_bytes);
      layout.extent_bytes = -layout.extent_bytes;
    }
    const auto strided = make_strided(memory, base, index_layout(layout));
    const uint64_t total = elements * layout.size_bytes;
    for (int i = 0; i < 10; ++i) {
      const uint64_t from = random() % (total + 1), bytes = random() % (total - from + 1);
      Bytes here(bytes + 1, 0xAB);
      ASSERT_TRUE(strided->read(here.data(), from, bytes).ok());
      for (uint64_t k = 0; k < bytes; ++k) {
        ASSERT_EQ(here[k], *reinterpret_cast<uint8_t*>(address_of_byte(base, layout, from + k)));
      }
      EXPECT_EQ(here[bytes], 0xAB);
      Bytes after = there;
      for (uint64_t k = 0; k < bytes; ++k) {
        here[k] = static_cast<uint8_t>(random());
        after[address_of_byte(base, layout, from + k) - address_of(there.data())] = here[k];
      }
      ASSERT_TRUE(strided->write(from, here.data(), bytes).ok());
      ASSERT_EQ(there, after);
    }
  }
}

TEST_P(EachMemory, HostileLayoutsAreRefused) {
  constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max(), kNear = std::numeric_limits<int64_t>::min();
  const Layout wrong[] = {
      {0, 0, {}},
      {0, 8, {{0, 0}}},
      {8, 8, {}},
      {8, 8, {{0, 0}, {0, 0}}},
      {8, 8, {{0, 4}}},
      {8, 8, {{0, 4}, {4, 5}}},
      {8, 8, {{0, kHuge}, {0, 9}}},
      {kHuge, 8, {{0, kHuge}, {0, 1}, {0, kHuge}}},
      {0, 8, {{0, kHuge}, {0, 1}}},
  };
  Bytes buffer(4096);
  for (const Layout& layout : wrong) {
    const auto strided = make_strided(memory, address_of(buffer.data()), index_layout(layout));
    EXPECT_EQ(strided->read(buffer.data(), 0, 8).status().code(), OFFPATH_ERR_ARGUMENT);
    EXPECT_EQ(strided->write(kHuge, buffer.data(), 1).status().code(), OFFPATH_ERR_ARGUMENT);
    EXPECT_EQ(strided->view(0, 8), nullptr);
  }
  const Layout outside[] = {
      {8, kFar, {{kFar, 8}}}, {8, 8, {{kNear, 8}}}, {8, kNear, {{0, 8}}}, {kHuge, kFar, {{kFar, kHuge}}}};
  for (const Layout& layout : outside) {
    for (const uint64_t base : {uint64_t{0}, kHuge}) {
      const auto strided = make_strided(memory, base, index_layout(layout));
      for (const uint64_t from : {uint64_t{24}, kHuge / 2, kHuge - 1}) {
        const bool refuses = strcmp(GetParam(), "direct") == 0 || !strided->read(buffer.data(), from, 16).ok();
        EXPECT_TRUE(refuses);
        [[maybe_unused]] const auto* view = strided->view(from, 16);
      }
    }
  }
  // Only empty ranges between full ones: they neither count nor loop.
  Layout sparse{2, 2, {}};
  for (int i = 0; i < 100000; ++i) sparse.ranges.push_back({i, i == 50000 || i == 99999 ? 1u : 0u});
  Bytes wide(300000, 7);
  EXPECT_TRUE(make_strided(memory, address_of(wide.data()), index_layout(sparse))->read(buffer.data(), 0, 4096).ok());
}

INSTANTIATE_TEST_SUITE_P(Kinds, EachMemory, ::testing::Values("cma", "direct"));

TEST(Strided, HasAViewInsideOneRangeOnly) {
  Bytes buffer(100);
  const uint64_t base = address_of(buffer.data());
  const auto layout = index_layout({10, 20, {{2, 4}, {8, 6}}});
  const auto direct = make_strided(make_direct(), base, layout);
  EXPECT_EQ(direct->view(0, 4), buffer.data() + 2);
  EXPECT_EQ(direct->view(5, 5), buffer.data() + 9);
  EXPECT_EQ(direct->view(24, 6), buffer.data() + 48);
  EXPECT_EQ(direct->view(0, 5), nullptr);
  EXPECT_EQ(direct->view(9, 2), nullptr);
  EXPECT_EQ(make_strided(make_cma(getpid()), base, layout)->view(0, 4), nullptr);
}

// The kernel stops at the first page it cannot reach, after having moved what lies before it.
TEST(Cma, AnUnreachableRangeIsAFault) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto* pages =
      static_cast<uint8_t*>(mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(pages), MAP_FAILED);
  ASSERT_EQ(munmap(pages + page, page), 0);
  const auto memory = make_cma(getpid());
  Bytes here(3 * page);
  const auto at = [&](size_t offset, size_t bytes) {
    return Range{static_cast<int64_t>(address_of(pages) + offset), bytes};
  };
  EXPECT_TRUE(memory->gather(here.data(), std::vector<Range>{at(0, page), at(2 * page, page)}).ok());
  const std::vector<std::vector<Range>> bad = {
      {at(page, 1)}, {at(0, page), at(page, page)}, {at(page - 1, 2)}, {at(0, 1), {0, 1}}, {{-1, 8}}};
  for (const auto& ranges : bad) {
    EXPECT_EQ(memory->gather(here.data(), ranges).status().code(), OFFPATH_ERR_MEMORY_FAULT);
    EXPECT_EQ(memory->scatter(ranges, here.data()).status().code(), OFFPATH_ERR_MEMORY_FAULT);
  }
  EXPECT_EQ(memory->read(here.data(), address_of(pages), 3 * page).status().code(), OFFPATH_ERR_MEMORY_FAULT);
  munmap(pages, page), munmap(pages + 2 * page, page);
}

TEST(Cma, ADeadProcessIsLost) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  uint8_t byte = 0;
  EXPECT_EQ(make_cma(child)->read(&byte, address_of(&byte), 1).status().code(), OFFPATH_ERR_PEER_LOST);
}

TEST(Scratch, IsBoundedMemoryWithAView) {
  const auto pool = std::make_shared<ScratchPool>(1 << 20);
  const auto scratch = pool->take(100000);
  ASSERT_NE(scratch, nullptr);
  uint8_t* view = scratch->view(0, 100000);
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(address_of(view) % 4096, 0U);
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
