// SPDX-License-Identifier: BSD-3-Clause
// What a one-sided operation wants, as bytes, and what is refused by whoever reads them.
#include "body.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace offpath::remote {
namespace {

using testing::Body;

constexpr offpath_remote_kind_t kAll[] = {OFFPATH_PUT,
                                          OFFPATH_GET,
                                          OFFPATH_ACCUMULATE,
                                          OFFPATH_GET_ACCUMULATE,
                                          OFFPATH_COMPARE_AND_SWAP,
                                          OFFPATH_LOCK_SHARED,
                                          OFFPATH_LOCK_EXCLUSIVE,
                                          OFFPATH_UNLOCK,
                                          OFFPATH_PUT_SIGNAL};

Body good(offpath_remote_kind_t kind, uint64_t bytes = 8, bool contiguous = true) {
  Body out;
  out.window = 0x1122334455667788;
  out.kind = kind;
  if (locks(kind)) return out;
  out.offset = 24;
  out.bytes = kind == OFFPATH_COMPARE_AND_SWAP ? 8 : bytes;
  out.contiguous = contiguous || signals(kind);
  if (signals(kind)) out.bytes = bytes + 9;
  if (!out.contiguous) out.layout = {8, 16, {{-4, 4}, {4, 4}}};
  if (accumulates(kind)) {
    out.reduction = {kind == OFFPATH_COMPARE_AND_SWAP ? OFFPATH_OP_NONE : OFFPATH_OP_SUM, OFFPATH_ELEMENT_I64};
  }
  if (is_short(out)) out.data.assign(data_bytes(out), 0x5A);
  return out;
}

std::vector<uint8_t> again(const Decoded& decoded) {
  std::vector<uint8_t> out;
  encode(decoded.wanted, decoded.data, out);
  return out;
}

offpath_status_t code_of(const std::vector<uint8_t>& body) { return decode(body).status().code(); }

TEST(RemoteBody, IsWhatWasEncoded) {
  for (const offpath_remote_kind_t kind : kAll) {
    for (const uint64_t bytes : {0, 8, 1024, 1032, 1 << 20}) {
      for (const bool contiguous : {true, false}) {
        const Body wanted = good(kind, bytes, contiguous);
        ASSERT_TRUE(check(wanted).ok()) << check(wanted).text();
        const auto body = encode(wanted);
        const auto got = decode(body);
        ASSERT_TRUE(got.ok()) << got.status().text() << " kind " << kind << " bytes " << bytes;
        EXPECT_EQ(again(got.value()), body);
        EXPECT_EQ(got->wanted.window, wanted.window);
        EXPECT_EQ(got->wanted.kind, kind);
        EXPECT_EQ(got->wanted.reduction, wanted.reduction);
        EXPECT_EQ(got->wanted.offset, wanted.offset);
        EXPECT_EQ(got->wanted.bytes, wanted.bytes);
        EXPECT_TRUE(std::equal(got->data.begin(), got->data.end(), wanted.data.begin(), wanted.data.end()));
        EXPECT_LE(body.size(), kMaxBodyBytes);
      }
    }
  }
}

TEST(RemoteBody, GoldenBytes) {
  Body wanted = good(OFFPATH_ACCUMULATE, 8, false);
  wanted.data = {1, 2, 3, 4, 5, 6, 7, 8};
  wanted.number = 0x0102030405060708;
  const std::vector<uint8_t> expected = {
      0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,                          // window
      24,   0,    0,    0,    0,    0,    0,    0,                             // offset
      8,    0,    0,    0,    0,    0,    0,    0,                             // bytes
      8,    7,    6,    5,    4,    3,    2,    1,                             // number
      3,    1,    4,    0,    2,    0,    0,    0,                             // kind, operator, element, 0, ranges
      8,    0,    0,    0,    0,    0,    0,    0,                             // size
      16,   0,    0,    0,    0,    0,    0,    0,                             // extent
      0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 4, 0, 0, 0, 0, 0, 0, 0,  // -4, 4
      4,    0,    0,    0,    0,    0,    0,    0,    4, 0, 0, 0, 0, 0, 0, 0,  // 4, 4
      1,    2,    3,    4,    5,    6,    7,    8};
  EXPECT_EQ(encode(wanted), expected);
}

TEST(RemoteBody, WrongLengthsAreRefused) {
  for (const offpath_remote_kind_t kind : kAll) {
    for (const bool contiguous : {true, false}) {
      const auto body = encode(good(kind, 8, contiguous));
      for (size_t length = 0; length < body.size(); ++length) {
        EXPECT_EQ(code_of({body.begin(), body.begin() + static_cast<std::ptrdiff_t>(length)}), OFFPATH_ERR_ARGUMENT);
      }
      auto longer = body;
      longer.push_back(0);
      EXPECT_EQ(code_of(longer), OFFPATH_ERR_ARGUMENT);
    }
  }
}

TEST(RemoteBody, DataMayFollowWholeOrNotAtAll) {
  for (const offpath_remote_kind_t kind : kAll) {
    Body body = good(kind);
    EXPECT_TRUE(decode(encode(body), Data::may_follow).ok());
    const bool sends = !body.data.empty();
    if (sends) body.data.pop_back();
    EXPECT_EQ(decode(encode(body), Data::may_follow).ok(), !sends);
    body.data.clear();
    EXPECT_TRUE(decode(encode(body), Data::may_follow).ok());
    EXPECT_EQ(decode(encode(body)).ok(), !sends);
    body.data.resize(4096);
    EXPECT_FALSE(decode(encode(body), Data::may_follow).ok());
  }
}

TEST(RemoteBody, ImpossibleValuesAreRefused) {
  const auto refused = [](offpath_remote_kind_t kind, auto change) {
    Body wanted = good(kind, 8, kind == OFFPATH_GET);
    change(wanted);
    EXPECT_EQ(check(wanted).code(), OFFPATH_ERR_ARGUMENT) << kind;
    EXPECT_EQ(code_of(encode(wanted)), OFFPATH_ERR_ARGUMENT) << kind;
  };
  for (const int wild : {0, 10}) {
    refused(OFFPATH_PUT, [&](Body& w) { w.kind = static_cast<offpath_remote_kind_t>(wild); });
  }
  for (const offpath_remote_kind_t kind : {OFFPATH_ACCUMULATE, OFFPATH_GET_ACCUMULATE}) {
    refused(kind, [](Body& w) { w.reduction.op = OFFPATH_OP_NONE; });
    refused(kind, [](Body& w) { w.reduction.op = OFFPATH_OP_MINLOC; });  // pairs only
    refused(kind, [](Body& w) { w.reduction.op = static_cast<offpath_operator_t>(15); });
    refused(kind, [](Body& w) { w.reduction.element = OFFPATH_ELEMENT_NONE; });
    refused(kind, [](Body& w) { w.reduction.element = static_cast<offpath_element_t>(23); });
    refused(kind, [](Body& w) { w.bytes = 12; });
  }
  refused(OFFPATH_COMPARE_AND_SWAP, [](Body& w) { w.bytes = 16; });
  refused(OFFPATH_COMPARE_AND_SWAP, [](Body& w) { w.bytes = 0; });
  refused(OFFPATH_COMPARE_AND_SWAP, [](Body& w) { w.reduction.op = OFFPATH_OP_SUM; });
  refused(OFFPATH_PUT, [](Body& w) { w.reduction.op = OFFPATH_OP_SUM; });
  refused(OFFPATH_GET, [](Body& w) { w.reduction.element = OFFPATH_ELEMENT_I8; });
  refused(OFFPATH_UNLOCK, [](Body& w) { w.bytes = 8; });
  refused(OFFPATH_LOCK_SHARED, [](Body& w) { w.offset = 8; });
  refused(OFFPATH_PUT_SIGNAL, [](Body& w) { w.bytes = 8; });
  refused(OFFPATH_PUT_SIGNAL, [](Body& w) { w.contiguous = false, w.layout = {17, 32, {{0, 17}}}; });
  for (const offpath_remote_kind_t kind : {OFFPATH_PUT, OFFPATH_GET}) {
    refused(kind, [](Body& w) { w.bytes = uint64_t{1} << 46; });
    refused(kind, [](Body& w) { w.bytes = UINT64_MAX; });
    refused(kind, [](Body& w) { w.contiguous = false, w.layout = {0, 8, {{0, 0}}}; });
    refused(kind, [](Body& w) { w.contiguous = false, w.layout = {9, 16, {{0, 4}, {4, 4}}}; });
    refused(kind, [](Body& w) { w.contiguous = false, w.layout = {4, 16, {{0, UINT64_MAX}, {4, 5}}}; });
  }
  Body many = good(OFFPATH_PUT);
  many.contiguous = false;
  many.layout = {kMaxRanges + 1, 1, std::vector<memory::Range>(kMaxRanges + 1, {0, 1})};
  EXPECT_EQ(check(many).code(), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(code_of(encode(many)), OFFPATH_ERR_ARGUMENT);
}

// Numbers that the enumerations cannot even hold.
TEST(RemoteBody, BytesThatAreNoEnumeratorsAreRefused) {
  constexpr size_t kKindAt = 32, kElementAt = 34;
  for (size_t at = kKindAt; at <= kElementAt; ++at) {
    for (const uint8_t wild : {32, 200, 255}) {
      auto body = encode(good(OFFPATH_ACCUMULATE));
      body[at] = wild;
      const auto got = decode(body);
      EXPECT_EQ(got.status().code(), OFFPATH_ERR_ARGUMENT);
      EXPECT_NE(std::string(got.status().text()).find(std::to_string(wild)), std::string::npos) << "says which";
    }
  }
}

TEST(RemoteBody, TheLongestFitsARequest) {
  Body wanted = good(OFFPATH_PUT, kInlineBytes);
  wanted.contiguous = false;
  wanted.layout = {kMaxRanges * 8, 4096, {}};
  for (uint32_t i = 0; i < kMaxRanges; ++i) wanted.layout.ranges.push_back({int64_t{i} * 16, 8});
  const auto body = encode(wanted);
  EXPECT_TRUE(decode(body).ok());
  EXPECT_LE(body.size(), kMaxBodyBytes);
}

TEST(RemoteBody, RandomChangesNeverGetThroughUnchecked) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20000; ++round) {
    auto body = encode(good(kAll[random() % std::size(kAll)], random() % 3 * 8, random() % 2 == 0));
    for (uint64_t left = 1 + random() % 4; left > 0; --left)
      body[random() % body.size()] = static_cast<uint8_t>(random());
    const auto got = decode(body);
    if (!got.ok()) continue;
    ASSERT_TRUE(check(got->wanted).ok());
    ASSERT_EQ(got->data.size(), is_short(got->wanted) ? data_bytes(got->wanted) : 0);
    ASSERT_EQ(again(got.value()), body);
  }
}

}  // namespace
}  // namespace offpath::remote
