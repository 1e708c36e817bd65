// SPDX-License-Identifier: BSD-3-Clause
// Batches: what goes in comes out, and no bytes whatsoever make an entry that lies outside.
#include "wire/batch.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace offpath::wire {
namespace {

using Bytes = std::vector<uint8_t>;

Message data_of(uint64_t pull_id) {
  Message m;
  m.kind = Kind::data;
  m.pull_id = pull_id;
  m.bytes = 1000;
  return m;
}

// Appends an entry with `payload` to `batch`.
void append(Bytes& batch, const Message& message, const Bytes& payload) {
  uint8_t head[256];
  const size_t bytes = encode_entry(message, 0, head);
  ASSERT_GT(bytes, 0U);
  batch.resize(batch.size() + bytes + payload.size());
  uint8_t* at = batch.data() + batch.size() - bytes - payload.size();
  ASSERT_EQ(encode_entry(message, payload.size(), {at, bytes + payload.size()}), bytes);
  std::copy(payload.begin(), payload.end(), at + bytes);
}

TEST(Batch, GoldenBytes) {
  Message fail;
  fail.kind = Kind::fail;
  fail.pull_id = 0x0102030405060708;
  fail.status = -7;
  Bytes batch;
  append(batch, fail, {0xAA, 0xBB, 0xCC});
  const Bytes expected{0x10, 0x00, 0x03, 0x00, 0x00, 0x00, 'O',  'p',  17,   5,    8,    7,   6,
                       5,    4,    3,    2,    1,    0xf9, 0xff, 0xff, 0xff, 0xAA, 0xBB, 0xCC};
  EXPECT_EQ(batch, expected);
}

TEST(Batch, ComesApartAsItWasPutTogether) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    Bytes batch;
    std::vector<Bytes> payloads(random() % 20);
    for (size_t i = 0; i < payloads.size(); ++i) {
      payloads[i].resize(random() % 3 == 0 ? 0 : random() % 500);
      for (uint8_t& byte : payloads[i]) byte = static_cast<uint8_t>(random());
      append(batch, data_of(i), payloads[i]);
    }
    std::span<const uint8_t> rest = batch;
    for (size_t i = 0; i < payloads.size(); ++i) {
      const auto entry = take_entry(rest);
      ASSERT_TRUE(entry.has_value()) << "seed " << seed;
      const auto message = decode(entry->header);
      ASSERT_TRUE(message.ok());
      EXPECT_EQ(message.value(), data_of(i));
      EXPECT_EQ(Bytes(entry->payload.begin(), entry->payload.end()), payloads[i]);
    }
    EXPECT_TRUE(rest.empty());
    EXPECT_FALSE(take_entry(rest).has_value());
  }
}

TEST(Batch, AnEntryNeedsItsRoom) {
  uint8_t out[200];
  const size_t head = encode_entry(data_of(1), 0, out);
  EXPECT_EQ(head, kEntryOverheadBytes + 28);
  for (size_t room = 0; room < sizeof(out); ++room) {
    EXPECT_EQ(encode_entry(data_of(1), 50, {out, room}), room < head + 50 ? 0 : head) << room;
  }
  EXPECT_EQ(encode_entry(data_of(1), SIZE_MAX, out), 0U);
  EXPECT_EQ(encode_entry(data_of(1), uint64_t{1} << 32, out), 0U);
}

TEST(Batch, EveryCutIsNoticed) {
  Bytes batch;
  append(batch, data_of(1), Bytes(40, 9));
  for (size_t length = 0; length < batch.size(); ++length) {
    const Bytes exact(batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(length));
    std::span<const uint8_t> rest = exact;
    EXPECT_FALSE(take_entry(rest).has_value()) << length;
    EXPECT_EQ(rest.size(), length) << "what cannot be taken stays";
  }
}

TEST(Batch, LengthsThatPointOutsideAreRefused) {
  Bytes batch;
  append(batch, data_of(1), Bytes(40, 9));
  for (size_t at = 0; at < kEntryOverheadBytes; ++at) {
    Bytes bad = batch;
    bad[at] = 0xFF;
    std::span<const uint8_t> rest = bad;
    EXPECT_FALSE(take_entry(rest).has_value()) << at;
  }
}

}  // namespace
}  // namespace offpath::wire
