// SPDX-License-Identifier: BSD-3-Clause
// Collective records in a segment whose owner lies: whatever is written there, nothing outside is ever touched.
#include "../session/client_segment.hpp"
#include "base/words.hpp"
#include "raw.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>

namespace offpath::collective {
namespace {

using session::kArenaOffset, session::kSegmentBytes, session::kSlotCount, session::SegmentView, session::Slot;
using testing::Raw;

class CollectiveRecords : public ::testing::Test, public session::testing::ClientSegment {
 protected:
  SegmentView view() { return std::move(SegmentView::open(other_mapping()).value()); }
};

TEST_F(CollectiveRecords, AreCopied) {
  const Raw good = testing::some();
  const std::vector<uint8_t> bytes = encode(good);
  SegmentView v = view();
  for (const uint64_t offset : {uint64_t{kArenaOffset}, kArenaOffset + 4u, kSegmentBytes - bytes.size()}) {
    write(offset, bytes);
    v.slot(5).record = offset;
    const auto got = decode(v.record(v.slot(5)));
    memset(memory.data() + offset, 0xFF, bytes.size());
    ASSERT_TRUE(got.ok()) << got.status().text();
    EXPECT_EQ(encode(got.value()), bytes);
    EXPECT_EQ(got->send[1].layout, 1U);
    EXPECT_EQ(got->recv[0].address, 0x3000U);
    EXPECT_EQ(got->counts_bytes, (std::vector<uint64_t>{8, 12, 16}));
    EXPECT_EQ(got->layouts[1].extent_bytes, 16);
    EXPECT_EQ(got->layouts[1].ranges[0].offset, -4);
  }
}

TEST_F(CollectiveRecords, OnesWithoutAnythingAreFine) {
  Raw barrier{};
  barrier.head.kind = OFFPATH_BARRIER;
  write(kSegmentBytes - sizeof(CollectiveRecord), encode(barrier));
  SegmentView v = view();
  v.slot(0).record = kSegmentBytes - sizeof(CollectiveRecord);
  const auto got = decode(v.record(v.slot(0)));
  ASSERT_TRUE(got.ok()) << got.status().text();
  EXPECT_TRUE(got->send.empty() && got->recv.empty() && got->layouts.empty());
}

TEST_F(CollectiveRecords, RecordsOutsideTheArenaAreRefused) {
  const std::vector<uint8_t> bytes = encode(testing::some());
  SegmentView v = view();
  for (size_t missing = 1; missing <= bytes.size(); ++missing) {  // the segment ends in the middle
    const uint64_t offset = kSegmentBytes - bytes.size() + missing;
    memcpy(memory.data() + offset, bytes.data(), bytes.size() - missing);
    v.slot(5).record = offset;
    ASSERT_EQ(decode(v.record(v.slot(5))).status().code(), OFFPATH_ERR_ARGUMENT) << missing;
  }
  for (const uint64_t bad : {uint64_t{0}, uint64_t{kArenaOffset - 8}, uint64_t{kSegmentBytes + 1}, UINT64_MAX,
                             UINT64_MAX - 39, UINT64_MAX - 40}) {
    v.slot(5).record = bad;
    EXPECT_EQ(decode(v.record(v.slot(5))).status().code(), OFFPATH_ERR_ARGUMENT) << bad;
  }
}

TEST_F(CollectiveRecords, ImpossibleCollectivesAreRefused) {
  SegmentView v = view();
  v.slot(5).record = kArenaOffset;
  const auto code_of = [&](const std::vector<uint8_t>& bytes) {
    write(kArenaOffset, bytes);
    return decode(v.record(v.slot(5))).status().code();
  };
  const std::vector<uint8_t> good = encode(testing::some());
  ASSERT_EQ(code_of(good), OFFPATH_OK);
  for (const size_t count : {offsetof(CollectiveRecord, send_count), offsetof(CollectiveRecord, recv_count),
                             offsetof(CollectiveRecord, counts_count), offsetof(CollectiveRecord, layouts_count),
                             offsetof(CollectiveRecord, ranges_count)}) {
    for (const uint32_t wild : {UINT32_MAX, 0x80000000U, 0x10000000U, 0x08000000U, 0x02000000U}) {
      std::vector<uint8_t> bytes = good;
      memcpy(&bytes[count], &wild, sizeof(wild));
      EXPECT_EQ(code_of(bytes), OFFPATH_ERR_ARGUMENT) << count << " " << wild;
    }
  }
  const auto refuse = [&](auto change) {
    Raw arguments = testing::some();
    change(arguments);
    EXPECT_EQ(code_of(encode(arguments)), OFFPATH_ERR_ARGUMENT);
  };
  refuse([](Raw& a) { a.ranges.pop_back(); });
  refuse([](Raw& a) { a.ranges.push_back({0, 1}); });
  refuse([](Raw& a) { a.layouts[0].ranges_count = 2; });
  refuse([](Raw& a) { a.layouts[0].ranges_count = UINT32_MAX; });
  refuse([](Raw& a) {  // the sum is right modulo 2^32
    a.layouts[0].ranges_count = UINT32_MAX;
    a.layouts[1].ranges_count = 4;
  });
}

TEST_F(CollectiveRecords, RandomOnesNeverReachOutside) {
  std::mt19937_64 random(17);
  SegmentView v = view();
  const auto wild = [&]() -> uint64_t {
    const uint64_t choices[] = {random(), random() % kSegmentBytes, kSegmentBytes - random() % 4096, kArenaOffset,
                                random() % 64};
    return choices[random() % std::size(choices)];
  };
  for (int i = 0; i < 3000; ++i) {
    Slot& slot = v.slot(static_cast<uint32_t>(random() % kSlotCount));
    std::vector<uint8_t> bytes = encode(testing::some());
    for (uint64_t left = random() % 4; left > 0; --left) {
      const auto value = static_cast<uint32_t>(wild());
      memcpy(&bytes[random() % (bytes.size() / 4) * 4], &value, sizeof(value));
    }
    slot.record = random() % 2 == 0 ? wild() : kArenaOffset + 4096;
    write(kArenaOffset + 4096, bytes);
    const auto got = decode(v.record(slot));
    if (got.ok()) {
      ASSERT_LE(encode(got.value()).size(), kSegmentBytes);
    }
  }
}

#define EXPECT_AT(type, field, expected) EXPECT_EQ(offsetof(type, field), size_t{expected}) << #type "." #field

TEST(CollectiveRecord, RecordOfACollective) {
  EXPECT_AT(CollectiveRecord, kind, 0);
  EXPECT_AT(CollectiveRecord, algorithm, 4);
  EXPECT_AT(CollectiveRecord, root, 8);
  EXPECT_AT(CollectiveRecord, op, 12);
  EXPECT_AT(CollectiveRecord, element, 16);
  EXPECT_AT(CollectiveRecord, send_count, 20);
  EXPECT_AT(CollectiveRecord, recv_count, 24);
  EXPECT_AT(CollectiveRecord, counts_count, 28);
  EXPECT_AT(CollectiveRecord, layouts_count, 32);
  EXPECT_AT(CollectiveRecord, ranges_count, 36);
  EXPECT_EQ(sizeof(CollectiveRecord), 40U);
  EXPECT_AT(memory::Block, peer, 0);
  EXPECT_AT(memory::Block, tag, 4);
  EXPECT_AT(memory::Block, address, 8);
  EXPECT_AT(memory::Block, bytes, 16);
  EXPECT_AT(memory::Block, layout, 24);
  EXPECT_EQ(sizeof(memory::Block), 32U);
  EXPECT_AT(memory::LayoutRecord, size_bytes, 0);
  EXPECT_AT(memory::LayoutRecord, extent_bytes, 8);
  EXPECT_AT(memory::LayoutRecord, ranges_count, 16);
  EXPECT_EQ(sizeof(memory::LayoutRecord), 24U);
  EXPECT_AT(memory::Range, offset, 0);
  EXPECT_AT(memory::Range, bytes, 8);
  EXPECT_EQ(sizeof(memory::Range), 16U);
}

TEST(CollectiveRecord, BytesThatAreNoEnumeratorsAreRefused) {
  const auto code = [](auto change) {
    Raw raw = testing::some();
    change(raw.head);
    return decode(encode(raw)).status().code();
  };
  EXPECT_EQ(code([](auto&) {}), OFFPATH_OK);
  for (const uint32_t wild : {10U, 255U, UINT32_MAX}) {
    EXPECT_EQ(code([&](auto& head) { head.kind = wild; }), OFFPATH_ERR_ARGUMENT);
    EXPECT_EQ(
        code([&](auto& head) { head.algorithm = std::max<uint32_t>(wild, base::kWordsEnd<offpath_algorithm_t>); }),
        OFFPATH_ERR_ARGUMENT);
    EXPECT_EQ(code([&](auto& head) { head.op = wild > 13 ? wild : 23; }), OFFPATH_ERR_ARGUMENT);
    EXPECT_EQ(code([&](auto& head) { head.element = wild > 13 ? wild : 23; }), OFFPATH_ERR_ARGUMENT);
  }
  EXPECT_EQ(code([](auto& head) { head.kind = 0; }), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(code([](auto& head) { head.op = OFFPATH_OP_REPLACE; }), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(code([](auto& head) { head.op = OFFPATH_OP_NO_OP; }), OFFPATH_ERR_ARGUMENT);
}

}  // namespace
}  // namespace offpath::collective
