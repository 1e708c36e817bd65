// SPDX-License-Identifier: BSD-3-Clause
// Records of windows and one-sided operations in a segment whose owner lies.
#include "client_segment.hpp"

#include <gtest/gtest.h>

#include <cstddef>

namespace offpath::session {
namespace {

class RemoteRecords : public ::testing::Test, public testing::ClientSegment {
 protected:
  SegmentView view() { return std::move(SegmentView::open(other_mapping()).value()); }
};

TEST_F(RemoteRecords, ArgumentsAreCopied) {
  const std::vector<uint8_t> bytes = testing::encode_remote(testing::some_remote());
  SegmentView v = view();
  for (const uint64_t offset : {uint64_t{kArenaOffset}, kArenaOffset + 4u, kSegmentBytes - bytes.size()}) {
    write(offset, bytes);
    v.slot(5).record = offset;
    const auto got = v.remote_arguments(v.slot(5));
    memset(memory.data() + offset, 0xFF, bytes.size());
    ASSERT_TRUE(got.ok()) << got.status().text();
    EXPECT_EQ(testing::encode_remote(got.value()), bytes);
    EXPECT_EQ(got->head.target, 1U);
    EXPECT_EQ(got->ranges[1].offset, -4);
    EXPECT_EQ(got->wanted.back(), 8);
  }
}

TEST_F(RemoteRecords, OnesOutsideTheArenaAreRefused) {
  const std::vector<uint8_t> bytes = testing::encode_remote(testing::some_remote());
  SegmentView v = view();
  for (size_t missing = 1; missing <= bytes.size(); ++missing) {  // the segment ends in the middle
    const uint64_t offset = kSegmentBytes - bytes.size() + missing;
    memcpy(memory.data() + offset, bytes.data(), bytes.size() - missing);
    v.slot(5).record = offset;
    ASSERT_EQ(v.remote_arguments(v.slot(5)).status().code(), OFFPATH_ERR_ARGUMENT) << missing;
  }
  for (const uint64_t bad : {uint64_t{0}, uint64_t{kArenaOffset - 8}, uint64_t{kSegmentBytes + 1}, UINT64_MAX,
                             UINT64_MAX - sizeof(RemoteRecord), UINT64_MAX - sizeof(RemoteRecord) + 1}) {
    v.slot(5).record = bad;
    EXPECT_EQ(v.remote_arguments(v.slot(5)).status().code(), OFFPATH_ERR_ARGUMENT) << bad;
  }
}

TEST_F(RemoteRecords, ImpossibleOnesAreRefused) {
  SegmentView v = view();
  v.slot(5).record = kArenaOffset;
  const auto code_with = [&](size_t field, uint32_t value) {
    write(kArenaOffset, testing::encode_remote(testing::some_remote()));
    at<uint32_t>(kArenaOffset + field) = value;
    return v.remote_arguments(v.slot(5)).status().code();
  };
  ASSERT_EQ(code_with(offsetof(RemoteRecord, target), 77), OFFPATH_OK) << "values are up to others";
  for (const uint32_t wild : {3U, 0x01000000U, 0x80000000U, UINT32_MAX}) {
    EXPECT_EQ(code_with(offsetof(RemoteRecord, send) + offsetof(BlockRecord, layout), wild), OFFPATH_ERR_ARGUMENT);
    EXPECT_EQ(code_with(offsetof(RemoteRecord, result) + offsetof(BlockRecord, layout), wild), OFFPATH_ERR_ARGUMENT);
    EXPECT_EQ(code_with(offsetof(RemoteRecord, layouts_count), wild), OFFPATH_ERR_ARGUMENT) << wild;
  }
  for (const uint32_t wild : {2U, 4U, 0x08000000U, 0x10000000U, UINT32_MAX}) {
    EXPECT_EQ(code_with(offsetof(RemoteRecord, ranges_count), wild), OFFPATH_ERR_ARGUMENT) << wild;
  }
  for (const uint32_t wild : {4097U, 65536U, UINT32_MAX}) {
    EXPECT_EQ(code_with(offsetof(RemoteRecord, wanted_bytes), wild), OFFPATH_ERR_ARGUMENT) << wild;
  }
}

TEST_F(RemoteRecords, WindowRecordsLieInTheArena) {
  const SegmentView v = view();
  EXPECT_NE(v.window_record(kArenaOffset), nullptr);
  EXPECT_NE(v.window_record(kSegmentBytes - sizeof(WindowRecord)), nullptr);
  for (const uint64_t bad : {uint64_t{0}, uint64_t{kArenaOffset - 64}, kArenaOffset + 8u, kSegmentBytes - 64,
                             uint64_t{kSegmentBytes}, UINT64_MAX - 63}) {
    EXPECT_EQ(v.window_record(bad), nullptr) << bad;
  }
}

}  // namespace
}  // namespace offpath::session
