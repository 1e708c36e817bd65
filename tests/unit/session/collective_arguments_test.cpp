// SPDX-License-Identifier: BSD-3-Clause
// Collective records in a segment whose owner lies: whatever is written there, nothing outside is ever touched.
#include "client_segment.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>

namespace offpath::session {
namespace {

class CollectiveRecords : public ::testing::Test, public testing::ClientSegment {
 protected:
  SegmentView view() { return std::move(SegmentView::open(other_mapping()).value()); }
};

TEST_F(CollectiveRecords, CollectiveArgumentsAreCopied) {
  const CollectiveArguments good = testing::some_collective();
  const std::vector<uint8_t> bytes = testing::encode_collective(good);
  SegmentView v = view();
  for (const uint64_t offset : {uint64_t{kArenaOffset}, kArenaOffset + 4u, kSegmentBytes - bytes.size()}) {
    write(offset, bytes);
    v.slot(5).record = offset;
    const auto got = v.collective_arguments(v.slot(5));
    memset(memory.data() + offset, 0xFF, bytes.size());
    ASSERT_TRUE(got.ok()) << got.status().text();
    EXPECT_EQ(testing::encode_collective(got.value()), bytes);
    EXPECT_EQ(got->send[1].layout, 1U);
    EXPECT_EQ(got->recv[0].address, 0x3000U);
    EXPECT_EQ(got->counts_bytes, (std::vector<uint64_t>{8, 12, 16}));
    EXPECT_EQ(got->layouts[1].extent_bytes, 16);
    EXPECT_EQ(got->ranges[1].offset, -4);
  }
}

TEST_F(CollectiveRecords, OnesWithoutAnythingAreFine) {
  CollectiveArguments barrier{};
  barrier.head.kind = OFFPATH_BARRIER;
  write(kSegmentBytes - sizeof(CollectiveRecord), testing::encode_collective(barrier));
  SegmentView v = view();
  v.slot(0).record = kSegmentBytes - sizeof(CollectiveRecord);
  const auto got = v.collective_arguments(v.slot(0));
  ASSERT_TRUE(got.ok()) << got.status().text();
  EXPECT_TRUE(got->send.empty() && got->recv.empty() && got->layouts.empty() && got->ranges.empty());
}

TEST_F(CollectiveRecords, RecordsOutsideTheArenaAreRefused) {
  const std::vector<uint8_t> bytes = testing::encode_collective(testing::some_collective());
  SegmentView v = view();
  for (size_t missing = 1; missing <= bytes.size(); ++missing) {  // the segment ends in the middle
    const uint64_t offset = kSegmentBytes - bytes.size() + missing;
    memcpy(memory.data() + offset, bytes.data(), bytes.size() - missing);
    v.slot(5).record = offset;
    ASSERT_EQ(v.collective_arguments(v.slot(5)).status().code(), OFFPATH_ERR_ARGUMENT) << missing;
  }
  for (const uint64_t bad : {uint64_t{0}, uint64_t{kArenaOffset - 8}, uint64_t{kSegmentBytes + 1}, UINT64_MAX,
                             UINT64_MAX - 39, UINT64_MAX - 40}) {
    v.slot(5).record = bad;
    EXPECT_EQ(v.collective_arguments(v.slot(5)).status().code(), OFFPATH_ERR_ARGUMENT) << bad;
  }
}

TEST_F(CollectiveRecords, ImpossibleCollectivesAreRefused) {
  SegmentView v = view();
  v.slot(5).record = kArenaOffset;
  const auto code_of = [&](const std::vector<uint8_t>& bytes) {
    write(kArenaOffset, bytes);
    return v.collective_arguments(v.slot(5)).status().code();
  };
  const std::vector<uint8_t> good = testing::encode_collective(testing::some_collective());
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
    CollectiveArguments arguments = testing::some_collective();
    change(arguments);
    EXPECT_EQ(code_of(testing::encode_collective(arguments)), OFFPATH_ERR_ARGUMENT);
  };
  refuse([](CollectiveArguments& a) { a.ranges.pop_back(); });
  refuse([](CollectiveArguments& a) { a.ranges.push_back({0, 1}); });
  refuse([](CollectiveArguments& a) { a.layouts[0].ranges_count = 2; });
  refuse([](CollectiveArguments& a) { a.layouts[0].ranges_count = UINT32_MAX; });
  refuse([](CollectiveArguments& a) {  // the sum is right modulo 2^32
    a.layouts[0].ranges_count = UINT32_MAX;
    a.layouts[1].ranges_count = 4;
  });
  refuse([](CollectiveArguments& a) { a.send[0].layout = 3; });
  refuse([](CollectiveArguments& a) { a.recv[1].layout = UINT32_MAX; });
  refuse([](CollectiveArguments& a) { a.layouts.clear(), a.ranges.clear(); });
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
    std::vector<uint8_t> bytes = testing::encode_collective(testing::some_collective());
    for (uint64_t left = random() % 4; left > 0; --left) {
      const auto value = static_cast<uint32_t>(wild());
      memcpy(&bytes[random() % (bytes.size() / 4) * 4], &value, sizeof(value));
    }
    slot.record = random() % 2 == 0 ? wild() : kArenaOffset + 4096;
    write(kArenaOffset + 4096, bytes);
    const auto arguments = v.collective_arguments(slot);
    if (arguments.ok()) {
      ASSERT_EQ(testing::encode_collective(arguments.value()).size(),
                sizeof(CollectiveRecord) + (arguments->head.send_count + arguments->head.recv_count) * 32 +
                    arguments->head.counts_count * 8 + arguments->head.layouts_count * 24 +
                    arguments->head.ranges_count * 16);
    }
  }
}

}  // namespace
}  // namespace offpath::session
