// SPDX-License-Identifier: BSD-3-Clause
// Messages of a link: golden bytes, and what is refused.
#include "wire/link.hpp"

#include "base/words.hpp"

#include <gtest/gtest.h>

namespace offpath::wire {
namespace {

LinkMessage sample() { return {LinkKind::put, 0x01020304, 5, -7, 0x1112131415161718, 0x2122232425262728, 4096}; }

TEST(LinkMessage, HasTheseBytes) {
  uint8_t out[kLinkMessageBytes];
  encode(sample(), out);
  const uint8_t expected[kLinkMessageBytes] = {'L',  2,    3,    0,    4,    3,    2,    1,    5,    0,
                                               0,    0,    0xf9, 0xff, 0xff, 0xff, 0x18, 0x17, 0x16, 0x15,
                                               0x14, 0x13, 0x12, 0x11, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23,
                                               0x22, 0x21, 0,    0x10, 0,    0,    0,    0,    0,    0};
  EXPECT_TRUE(std::equal(std::begin(out), std::end(out), std::begin(expected)));
  EXPECT_EQ(decode_link(out).value(), sample());
}

TEST(LinkMessage, NonsenseIsRefused) {
  const auto refused = [](LinkMessage message, size_t at = 0, int add = 0) {
    uint8_t out[kLinkMessageBytes];
    encode(message, out);
    out[at] = static_cast<uint8_t>(out[at] + add);
    return !decode_link(out).ok();
  };
  EXPECT_FALSE(refused(sample()));
  for (const size_t at : {0, 1, 3}) EXPECT_TRUE(refused(sample(), at, 1)) << at;
  EXPECT_TRUE(refused(sample(), 2, -3)) << "no kind";
  EXPECT_TRUE(refused(sample(), 2, 3)) << "an unknown kind";
  LinkMessage message = sample();
  message.bytes = kMaxAccessBytes + 1;
  EXPECT_TRUE(refused(message));
  message = sample();
  message.ranges = kMaxAccessRanges + 1;
  EXPECT_TRUE(refused(message));
  for (int status = 2; status-- > base::kLastError - 1;) {
    message = sample();
    message.status = status;
    EXPECT_EQ(refused(message), !base::is_known_code(status)) << status;
  }
  EXPECT_TRUE(base::is_known_code(base::kLastError));
  uint8_t out[kLinkMessageBytes];
  encode(sample(), out);
  EXPECT_FALSE(decode_link(std::span(out).first(kLinkMessageBytes - 1)).ok());
}

TEST(LinkStream, EntriesAreTakenWhole) {
  std::vector<uint8_t> stream;
  const uint8_t body[3] = {7, 8, 9};
  add_entry(stream, EntryKind::submit, 5, body);
  add_entry(stream, EntryKind::gone, 6, {});
  for (size_t bytes = 0; bytes < 15; ++bytes) {
    std::span<const uint8_t> part = std::span(stream).first(bytes);
    const auto entry = take_link_entry(part);
    ASSERT_TRUE(entry.ok());
    EXPECT_FALSE(entry.value());
    EXPECT_EQ(part.size(), bytes);
  }
  std::span<const uint8_t> rest(stream);
  const auto first = take_link_entry(rest).value();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->kind, EntryKind::submit);
  EXPECT_EQ(first->client, 5U);
  EXPECT_TRUE(std::equal(first->body.begin(), first->body.end(), std::begin(body), std::end(body)));
  EXPECT_EQ(take_link_entry(rest).value()->kind, EntryKind::gone);
  EXPECT_TRUE(rest.empty());
  for (const size_t at : {0, 11}) {  // the kind, the length
    auto wrong = stream;
    wrong[at] = 200;
    std::span<const uint8_t> in(wrong);
    EXPECT_FALSE(take_link_entry(in).ok());
  }
}

}  // namespace
}  // namespace offpath::wire
