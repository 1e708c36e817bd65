// SPDX-License-Identifier: BSD-3-Clause
// What a caller can get wrong in an offpath_remote_t, and what goes into the segment.
#include "client/described.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace offpath::client {
namespace {

using remote::Data;

const uint8_t kSend[512] = {1, 2, 3, 4, 5, 6, 7, 8};
uint8_t result[512];
const offpath_range_t kRanges[] = {{-4, 4}, {4, 4}};
const offpath_layout_t kLayouts[] = {{8, 16, kRanges, 2}, {4, 4, kRanges, 1}};

offpath_block_t block(const void* address, uint64_t bytes, uint32_t layout = 0) {
  return {0, 0, address, bytes, layout};
}

offpath_remote_t good(offpath_remote_kind_t kind) {
  offpath_remote_t out{};
  out.struct_bytes = sizeof(out);
  out.kind = kind;
  out.target = 1;
  if (kind >= OFFPATH_LOCK_SHARED && kind <= OFFPATH_UNLOCK) return out;
  out.target_bytes = 8;
  out.target_offset = 40;
  const bool swaps = kind == OFFPATH_COMPARE_AND_SWAP;
  if (kind == OFFPATH_ACCUMULATE || kind == OFFPATH_GET_ACCUMULATE) out.op = OFFPATH_OP_SUM;
  if (out.op != 0 || swaps) out.element = OFFPATH_ELEMENT_I64;
  if (kind != OFFPATH_GET) out.send = block(kSend, swaps ? 16 : 8);
  if (kind == OFFPATH_GET || kind == OFFPATH_GET_ACCUMULATE || swaps) out.result = block(result, 8);
  if (kind == OFFPATH_PUT_SIGNAL) out.target_bytes = 16, out.signal = kSend;
  return out;
}

// As a caller in C may.
template <typename Enumeration>
void put_number(Enumeration& to, int number) {
  static_assert(sizeof(to) == sizeof(number));
  memcpy(&to, &number, sizeof(number));
}

template <typename Change>
offpath_status_t code(offpath_remote_kind_t kind, Change change) {
  offpath_remote_t remote = good(kind);
  change(remote);
  DescribedRemote described;
  return describe(remote, 2, described);
}

TEST(RemoteCheck, GoodOnesPass) {
  for (int kind = OFFPATH_PUT; kind <= OFFPATH_PUT_SIGNAL; ++kind) {
    EXPECT_EQ(code(static_cast<offpath_remote_kind_t>(kind), [](auto&) {}), OFFPATH_OK) << kind;
  }
  EXPECT_EQ(code(OFFPATH_PUT, [](auto& r) { r.target_bytes = 0, r.send = {}; }), OFFPATH_OK);
  const auto no_op = [](auto& r) { r.op = OFFPATH_OP_NO_OP, r.send = block(nullptr, 77, 99); };
  EXPECT_EQ(code(OFFPATH_GET_ACCUMULATE, no_op), OFFPATH_OK) << "its send is not looked at";
  const auto strided = [](auto& r) {
    r.layouts = kLayouts, r.layouts_count = 2, r.target_layout = 1, r.send = block(nullptr, 8, 2);
  };
  EXPECT_EQ(code(OFFPATH_PUT, strided), OFFPATH_OK);
}

TEST(RemoteCheck, BadOnesDoNot) {
  const auto refused = [](offpath_remote_kind_t kind, auto change) {
    EXPECT_EQ(code(kind, change), OFFPATH_ERR_ARGUMENT) << kind;
  };
  for (int i = OFFPATH_PUT; i <= OFFPATH_PUT_SIGNAL; ++i) {
    const auto kind = static_cast<offpath_remote_kind_t>(i);
    refused(kind, [](auto& r) { r.struct_bytes = 0; });
    refused(kind, [](auto& r) { r.target = 2; });
    refused(kind, [](auto& r) { r.target_layout = 1; });
    refused(kind, [](auto& r) { r.target_bytes = uint64_t{1} << 46; });
    refused(kind, [](auto& r) { r.layouts_count = 1; });
    refused(kind, [](auto& r) { r.send.tag = 1; });
    refused(kind, [](auto& r) { r.result.peer = 1; });
  }
  for (const int wild : {0, 10, -1, 1000}) {
    refused(OFFPATH_PUT, [&](auto& r) { put_number(r.kind, wild); });
  }
  refused(OFFPATH_PUT, [](auto& r) { r.send.bytes = 9; });
  refused(OFFPATH_PUT, [](auto& r) { r.send.address = nullptr; });
  refused(OFFPATH_PUT, [](auto& r) { r.send.layout = 1; });
  refused(OFFPATH_PUT, [](auto& r) { r.result = block(result, 8); });
  refused(OFFPATH_GET, [](auto& r) { r.send = block(kSend, 8); });
  refused(OFFPATH_GET, [](auto& r) { r.result.bytes = 4; });
  refused(OFFPATH_COMPARE_AND_SWAP, [](auto& r) { r.send.bytes = 8; });
  refused(OFFPATH_UNLOCK, [](auto& r) { r.target_bytes = 8; });
  refused(OFFPATH_PUT, [](auto& r) { r.signal = kSend; });
  refused(OFFPATH_PUT_SIGNAL, [](auto& r) { r.signal = nullptr; });
  refused(OFFPATH_PUT_SIGNAL, [](auto& r) { r.target_bytes = 8, r.send.bytes = 0; });
  refused(OFFPATH_PUT_SIGNAL, [](auto& r) { r.layouts = kLayouts, r.layouts_count = 1, r.target_layout = 1; });
  for (const int wild : {0, 15, 1000, -1}) {
    refused(OFFPATH_ACCUMULATE, [&](auto& r) { put_number(r.op, wild); });
    refused(OFFPATH_COMPARE_AND_SWAP, [&](auto& r) { put_number(r.element, wild == 15 ? 23 : wild); });
  }
  const offpath_layout_t wrong[] = {{9, 16, kRanges, 2}};
  refused(OFFPATH_PUT, [&](auto& r) { r.layouts = wrong, r.layouts_count = 1; });
  const std::vector<offpath_range_t> many(OFFPATH_REMOTE_RANGES_MAX + 1, {0, 1});
  const offpath_layout_t long_one[] = {{many.size(), 1, many.data(), static_cast<uint32_t>(many.size())}};
  refused(OFFPATH_PUT, [&](auto& r) { r.layouts = long_one, r.layouts_count = 1, r.target_layout = 1; });
  EXPECT_EQ(code(OFFPATH_PUT, [&](auto& r) { r.layouts = long_one, r.layouts_count = 1; }), OFFPATH_OK)
      << "here there may be more";
  const offpath_layout_t endless[] = {{8, 8, kRanges, UINT32_MAX}};
  EXPECT_EQ(code(OFFPATH_PUT, [&](auto& r) { r.layouts = endless, r.layouts_count = 1; }), OFFPATH_ERR_NO_MEMORY);
  EXPECT_EQ(code(OFFPATH_PUT, [&](auto& r) { r.layouts = kLayouts, r.layouts_count = UINT32_MAX; }),
            OFFPATH_ERR_NO_MEMORY);
}

// What the service reads of it.
struct Built {
  explicit Built(const offpath_remote_t& from) {
    DescribedRemote described;
    EXPECT_EQ(describe(from, 2, described), OFFPATH_OK);
    described.wanted.window = 9;
    std::vector<uint8_t> record(7), same;
    encode(described.origin, described.wanted, described.data, record);
    encode(described.wanted, described.data, described.origin.body);
    encode(described.origin, same);
    EXPECT_EQ(record, same) << "whether the body is written at once or was there";
    auto origin_read = remote::decode_origin(record);
    EXPECT_TRUE(origin_read.ok()) << origin_read.status().text();
    if (!origin_read.ok()) return;
    origin = std::move(origin_read.value());
    auto got = remote::decode(origin.body, Data::may_follow);
    EXPECT_TRUE(got.ok()) << got.status().text();
    if (got.ok()) decoded = std::move(got.value());
  }
  remote::Origin origin;
  remote::Decoded decoded;
};

TEST(RemoteRecords, ShortContiguousDataComesAlong) {
  for (const uint64_t length : {1, 8, 256, 257}) {
    offpath_remote_t put = good(OFFPATH_PUT);
    put.target_bytes = length;
    put.send = block(kSend, length);
    const Built built(put);
    const auto data = built.decoded.data;
    EXPECT_EQ(data.size(), length <= 256 ? length : 0);
    EXPECT_EQ(memcmp(data.data(), kSend, data.size()), 0);
    EXPECT_EQ(built.decoded.wanted.window, 9U);
    EXPECT_EQ(built.decoded.wanted.offset, 40U);
    EXPECT_EQ(built.decoded.wanted.bytes, length);
  }
  offpath_remote_t strided = good(OFFPATH_PUT);
  strided.layouts = kLayouts, strided.layouts_count = 2, strided.target_layout = 2, strided.send.layout = 1;
  const Built built(strided);
  EXPECT_TRUE(built.decoded.data.empty());
  ASSERT_EQ(built.origin.layouts.size(), 2U);
  EXPECT_EQ(built.origin.layouts[0].ranges.size(), 2U);
  EXPECT_EQ(built.origin.send.layout, 1U);
  EXPECT_EQ(built.decoded.wanted.layout.extent_bytes, 4);
  ASSERT_EQ(built.decoded.wanted.layout.ranges.size(), 1U);
  EXPECT_EQ(built.decoded.wanted.layout.ranges[0].offset, -4);
}

TEST(RemoteRecords, WhatAKindDoesNotUseIsZero) {
  offpath_remote_t swap = good(OFFPATH_COMPARE_AND_SWAP);
  swap.op = OFFPATH_OP_SUM;
  EXPECT_EQ(Built(swap).decoded.wanted.reduction.op, OFFPATH_OP_NONE);
  EXPECT_EQ(Built(swap).decoded.data.size(), 16U);
  offpath_remote_t fetch = good(OFFPATH_GET_ACCUMULATE);
  fetch.op = OFFPATH_OP_NO_OP;
  EXPECT_EQ(Built(fetch).origin.send.bytes, 0U);
  EXPECT_TRUE(Built(fetch).decoded.data.empty());
  offpath_remote_t lock = good(OFFPATH_LOCK_SHARED);
  lock.target_offset = 5, lock.op = OFFPATH_OP_SUM, lock.element = OFFPATH_ELEMENT_I8;
  EXPECT_EQ(Built(lock).decoded.wanted.offset, 0U);
  EXPECT_EQ(Built(lock).decoded.wanted.reduction, kernels::Reduction{});
}

}  // namespace
}  // namespace offpath::client
