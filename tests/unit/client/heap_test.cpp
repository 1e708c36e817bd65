// SPDX-License-Identifier: BSD-3-Clause
#include "client/heap.hpp"

#include <gtest/gtest.h>

#include <random>

namespace offpath::client {
namespace {

TEST(Heap, StretchesDoNotOverlapAndComeBack) {
  constexpr uint64_t kCapacity = 256 * 4096;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Heap heap(kCapacity);
    std::map<uint64_t, uint64_t> held;
    for (int i = 0; i < 500; ++i) {
      if (random() % 3 != 0) {
        const uint64_t bytes = 1 + random() % 100000;
        if (const auto offset = heap.allocate(bytes)) {
          EXPECT_EQ(*offset % 4096, 0U);
          EXPECT_LE(*offset + bytes, kCapacity);
          for (const auto& [other, length] : held) EXPECT_TRUE(*offset + bytes <= other || other + length <= *offset);
          held[*offset] = bytes;
        }
      } else if (!held.empty()) {
        const auto gone = std::next(held.begin(), static_cast<long>(random() % held.size()));
        EXPECT_GE(heap.release(gone->first), gone->second);
        EXPECT_EQ(heap.release(gone->first), 0U);
        held.erase(gone);
      }
    }
    for (const auto& [offset, bytes] : held) EXPECT_GE(heap.release(offset), bytes);
    EXPECT_EQ(heap.allocate(kCapacity), uint64_t{0});
  }
}

TEST(Heap, HasNothingWithoutMemory) {
  Heap heap(0);
  EXPECT_FALSE(heap.allocate(1));
  Heap small(4096);
  EXPECT_FALSE(small.allocate(0));
  EXPECT_FALSE(small.allocate(4097));
  EXPECT_FALSE(small.allocate(UINT64_MAX));
  EXPECT_EQ(small.allocate(4096), uint64_t{0});
}

TEST(Heap, AStretchIsGivenBackInParts) {
  Heap heap(16 * 4096);
  const uint64_t at = *heap.allocate(8 * 4096);
  heap.split(at, at + 3 * 4096);
  heap.split(at, at);                    // no parts
  heap.split(at, at + 3 * 4096);         // done already
  heap.split(at + 1 * 4096, at + 8192);  // none begins there
  EXPECT_TRUE(heap.begins_at(at) && heap.begins_at(at + 3 * 4096));
  EXPECT_EQ(heap.release(at), 3 * 4096U);
  EXPECT_EQ(heap.release(at + 3 * 4096), 5 * 4096U);
  EXPECT_EQ(*heap.allocate(16 * 4096), 0U);
}

}  // namespace
}  // namespace offpath::client
