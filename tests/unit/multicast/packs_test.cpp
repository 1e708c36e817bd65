// SPDX-License-Identifier: BSD-3-Clause
// Packs: whatever the order, they come whole once; what does not fit is passed over.
#include "multicast/packs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace offpath::multicast {
namespace {

using Data = std::vector<uint8_t>;

constexpr uint32_t kPacked = 40;
constexpr uint32_t kPack = 10;

Arrivals arrivals_of(std::vector<uint64_t> parts, uint32_t own = 1) {
  return Arrivals(*Shape::make(std::move(parts), kPacked), own);
}

Data bytes_of(size_t count, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  Data out(count);
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(random());
  return out;
}

struct Sent {
  uint32_t number;
  Data bytes;
};

std::vector<Sent> sent(Packs& packs, uint32_t first, const Coded& coded, const Data& bytes) {
  std::vector<Sent> out;
  for (uint32_t i = 0; i < packs.datagrams(coded.bytes); ++i) {
    const auto datagram = packs.write(coded, bytes, i);
    out.push_back({kCoded | (first + i), {datagram.begin(), datagram.end()}});
  }
  return out;
}

TEST(Packs, HoldWholeNumbers) {
  for (const size_t chunk : {1, 7, 40, 1401, 1432, 8932, 32768}) {
    const uint32_t chunks = Packs::chunks_for(chunk, 16 << 10);
    EXPECT_EQ(chunks * chunk % 8, 0U) << chunk;
    EXPECT_GE(chunks * chunk, size_t{16} << 10) << chunk;
    EXPECT_LT(chunks * chunk, (size_t{16} << 10) + 8 * chunk) << chunk;
  }
  EXPECT_FALSE(Packs::make(0, kPacked));
  EXPECT_FALSE(Packs::make(1, kCodedHeadBytes));
  EXPECT_FALSE(Packs::make(UINT32_MAX, 1400));
  EXPECT_FALSE(Packs::make(1, SIZE_MAX));
}

TEST(Packs, EndWithTheirPart) {
  const Arrivals arrivals = arrivals_of({1000, 400, 0, 30});  // 25, 10, 0 and 1 chunks
  const Packs packs = *Packs::make(kPack, kPacked);
  const Shape& shape = arrivals.shape();
  EXPECT_EQ(packs.pack_of(shape, 0), (Chunks{0, 10}));
  EXPECT_EQ(packs.pack_of(shape, 19), (Chunks{10, 10}));
  EXPECT_EQ(packs.pack_of(shape, 24), (Chunks{20, 5}));
  EXPECT_EQ(packs.pack_of(shape, 25), (Chunks{25, 10}));
  EXPECT_EQ(packs.pack_of(shape, 35), (Chunks{35, 1}));
}

TEST(Packs, ComeWholeOnceInAnyOrder) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    Arrivals arrivals = arrivals_of({1000, 400});
    Packs packs = *Packs::make(kPack, kPacked);
    std::vector<Sent> all;
    std::vector<Data> bytes;
    for (uint32_t pack = 0; pack < 2; ++pack) {
      bytes.push_back(bytes_of(1 + random() % 250, seed));
      const Coded coded{static_cast<uint32_t>(bytes.back().size()), 77, 1, 8};
      for (const Sent& one : sent(packs, pack * kPack, coded, bytes.back()))
        all.insert(all.end(), 1 + random() % 2, one);
    }
    std::shuffle(all.begin(), all.end(), random);
    uint32_t whole = 0;
    for (const Sent& one : all) {
      const auto got = packs.take(arrivals, 0, one.number, one.bytes);
      if (!got) continue;
      ++whole;
      EXPECT_EQ(got->bytes, bytes[got->pack.first / kPack]);
      EXPECT_EQ(got->coded, (Coded{static_cast<uint32_t>(got->bytes.size()), 77, 1, 8}));
      arrivals.note(got->pack);
    }
    EXPECT_EQ(whole, 2U);
    EXPECT_EQ(packs.fetched_too(), 0U);
  }
}

TEST(Packs, CountWhatIsLostInDatagrams) {
  Arrivals arrivals = arrivals_of({400, 400});
  Packs packs = *Packs::make(kPack, kPacked);
  const Data bytes = bytes_of(100);  // 4 datagrams
  const auto all = sent(packs, 0, {100, 1, 1, 1}, bytes);
  ASSERT_EQ(all.size(), 4U);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(packs.take(arrivals, 0, all[i].number, all[i].bytes));
  EXPECT_EQ(packs.spared(), 6U) << "of 10 chunks 4 left";
  EXPECT_EQ(packs.fetched_too(), 9U) << "of 10 that are missing one is lost";
  EXPECT_TRUE(packs.take(arrivals, 0, all[3].number, all[3].bytes));
  EXPECT_EQ(packs.spared(), 6U);
  EXPECT_EQ(packs.fetched_too(), 0U);
}

TEST(Packs, AreOfUseWhileSomethingIsMissing) {
  Arrivals arrivals = arrivals_of({400, 400});
  Packs packs = *Packs::make(kPack, kPacked);
  const Data bytes = bytes_of(20);
  const Sent one = sent(packs, 0, {20, 1, 1, 1}, bytes)[0];
  arrivals.note({0, 9});
  EXPECT_TRUE(packs.take(arrivals, 0, one.number, one.bytes));
  arrivals.note({9, 1});
  EXPECT_FALSE(packs.take(arrivals, 0, one.number, one.bytes));
}

TEST(Packs, PassOverWhatCannotBe) {
  Arrivals arrivals = arrivals_of({400, 400});
  Packs packs = *Packs::make(kPack, kPacked);
  const Data bytes = bytes_of(400);
  const auto refused = [&](uint32_t sender, uint32_t number, const Data& datagram) {
    return !packs.take(arrivals, sender, number, datagram) && packs.fetched_too() == 0;
  };
  const Sent good = sent(packs, 0, {100, 1, 1, 1}, bytes)[0];
  EXPECT_TRUE(refused(1, good.number, good.bytes)) << "another one's";
  EXPECT_TRUE(refused(0, kCoded | 5, good.bytes)) << "it has no such datagram";
  EXPECT_TRUE(refused(0, kCoded | 3, good.bytes)) << "the last one is shorter";
  EXPECT_TRUE(refused(0, UINT32_MAX, good.bytes));
  EXPECT_TRUE(refused(0, kCoded | 20, good.bytes));
  for (size_t length = 0; length < good.bytes.size(); ++length) {
    EXPECT_TRUE(
        refused(0, good.number, Data(good.bytes.begin(), good.bytes.begin() + static_cast<std::ptrdiff_t>(length))));
  }
  for (const uint32_t length : {0U, 301U, 400U, UINT32_MAX}) {
    Coded coded{length, 1, 1, 1};
    const auto datagram = packs.write(coded, bytes, 0);
    EXPECT_TRUE(refused(0, kCoded, Data(datagram.begin(), datagram.end()))) << length;
  }
  // The first word on a pack stands.
  EXPECT_FALSE(packs.take(arrivals, 0, good.number, good.bytes));
  const auto other = sent(packs, 0, {100, 2, 1, 1}, bytes);
  for (const Sent& one : other) EXPECT_FALSE(packs.take(arrivals, 0, one.number, one.bytes));
}

TEST(Packs, AreGivenUpWhereTooManyAreOpen) {
  Arrivals arrivals = arrivals_of({1000 * kPacked * kPack, 400});
  Packs packs = *Packs::make(kPack, kPacked);
  const Data bytes = bytes_of(60);  // 2 datagrams
  const auto pack = [&](uint32_t index) { return sent(packs, index * kPack, {60, 1, 1, 1}, bytes); };
  for (uint32_t i = 0; i <= Packs::kMostOpen; ++i) {
    EXPECT_FALSE(packs.take(arrivals, 0, pack(i)[0].number, pack(i)[0].bytes));
  }
  EXPECT_FALSE(packs.take(arrivals, 0, pack(0)[1].number, pack(0)[1].bytes)) << "the oldest";
  EXPECT_TRUE(packs.take(arrivals, 0, pack(5)[1].number, pack(5)[1].bytes));
}

}  // namespace
}  // namespace offpath::multicast
