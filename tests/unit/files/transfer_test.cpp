// SPDX-License-Identifier: BSD-3-Clause
// Transfers of files: their bytes in a segment, what is refused, and how much of one a file has.
#include "files/transfer.hpp"

#include <gtest/gtest.h>

#include <offpath/offpath.h>

#include <random>

namespace offpath::files {
namespace {

using memory::Layout;

Transfer some() {
  Transfer out;
  out.file = 3;
  out.memory = {0, 0, 0x1000, 96, 1, 0};
  out.offset = 100;
  out.skip = 8;
  out.layout = 2;
  out.layouts = {{16, 32, {{-4, 8}, {8, 8}}}, {24, 64, {{0, 8}, {16, 16}}}};
  out.after = {7, UINT32_MAX};
  return out;
}

TEST(FileTransfer, ItsBytesAreReadAsTheyWereWritten) {
  uint64_t after_offset = 0;
  const std::vector<uint8_t> bytes = encode(some(), &after_offset);
  EXPECT_EQ(after_offset, bytes.size() - 2 * sizeof(uint32_t));
  const auto read = decode(bytes);
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_TRUE(check(read.value()).ok());
  EXPECT_EQ(encode(read.value()), bytes);
  EXPECT_EQ(read->after, some().after);
}

TEST(FileTransfer, OneThatIsCutShortIsRefused) {
  const std::vector<uint8_t> bytes = encode(some());
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decode(std::span(bytes).first(length)).ok()) << length;
}

TEST(FileTransfer, AnyBytesAreReadOrRefused) {
  std::mt19937_64 random(7);
  const std::vector<uint8_t> good = encode(some());
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> bytes = good;
    for (size_t count = 1 + random() % 4; count > 0; --count)
      bytes[sizeof(ResultRecord) + random() % (bytes.size() - sizeof(ResultRecord))] = static_cast<uint8_t>(random());
    const auto read = decode(bytes);
    if (!read.ok() || !check(read.value()).ok()) continue;
    EXPECT_LE(bytes_within(read.value(), random() >> (random() % 64)), read->memory.bytes);
  }
}

TEST(FileTransfer, WhatCannotBeIsRefused) {
  const auto refused = [](auto change) {
    Transfer bad = some();
    change(bad);
    EXPECT_EQ(check(bad).code(), OFFPATH_ERR_ARGUMENT);
  };
  refused([](auto& bad) { bad.file = kMaxFiles; });
  refused([](auto& bad) { bad.memory.peer = 1; });
  refused([](auto& bad) { bad.memory.tag = 1; });
  refused([](auto& bad) { bad.memory.layout = 3; });
  refused([](auto& bad) { bad.memory.bytes = uint64_t{1} << 46; });
  refused([](auto& bad) { bad.layout = 3; });
  refused([](auto& bad) { bad.offset = uint64_t{1} << 63; });
  refused([](auto& bad) { bad.skip = UINT64_MAX; });
  refused([](auto& bad) { bad.offset = INT64_MAX - 10; });
  refused([](auto& bad) { bad.layouts[0].size_bytes = 15; });
  refused([](auto& bad) { bad.layouts[1].extent_bytes = 31; });
  refused([](auto& bad) { bad.layouts[1].extent_bytes = -64; });
  refused([](auto& bad) { bad.layouts[1].ranges[0].offset = -1; });
  refused([](auto& bad) { bad.layouts[1].ranges[1].offset = 7; });
  refused([](auto& bad) { bad.layouts[1].extent_bytes = INT64_MAX; });
  refused([](auto& bad) { bad.layouts.push_back(bad.layouts[0]); });
}

// Byte by byte.
uint64_t count_within(const Transfer& transfer, uint64_t file_bytes) {
  uint64_t within = 0, data = 0;
  for (uint64_t element = 0; data < transfer.skip + transfer.memory.bytes; ++element) {
    const Layout layout = transfer.layout == 0 ? Layout{1, 1, {{0, 1}}} : transfer.layouts[transfer.layout - 1];
    for (const memory::Range& range : layout.ranges) {
      for (uint64_t i = 0; i < range.bytes; ++i, ++data) {
        const uint64_t at = transfer.offset + element * static_cast<uint64_t>(layout.extent_bytes) +
                            static_cast<uint64_t>(range.offset) + i;
        const bool wanted = data >= transfer.skip && data < transfer.skip + transfer.memory.bytes;
        within += wanted && at < file_bytes ? 1 : 0;
      }
    }
  }
  return within;
}

TEST(FileTransfer, WhatAFileHasOfOne) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 3000; ++round) {
    Transfer transfer;
    transfer.memory.bytes = random() % 100;
    transfer.offset = random() % 50;
    transfer.skip = random() % 30;
    transfer.layout = random() % 2;
    Layout layout;
    uint64_t at = 0;
    for (size_t count = 1 + random() % 4; count > 0; --count) {
      at += random() % 5;
      layout.ranges.push_back({static_cast<int64_t>(at), 1 + random() % 6});
      at += layout.ranges.back().bytes;
      layout.size_bytes += layout.ranges.back().bytes;
    }
    layout.extent_bytes = static_cast<int64_t>(at + random() % 5);
    transfer.layouts = {layout};
    ASSERT_TRUE(check(transfer).ok());
    for (const uint64_t length : {random() % 200, transfer.offset, transfer.offset + transfer.skip, uint64_t{1000}})
      ASSERT_EQ(bytes_within(transfer, length), count_within(transfer, length)) << "round " << round;
  }
}

}  // namespace
}  // namespace offpath::files
