// SPDX-License-Identifier: BSD-3-Clause
// Port through layouts, by CMA (of this very process) and directly, against a list of byte addresses.
#include "memory/port.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>

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

}  // namespace
}  // namespace offpath::memory
