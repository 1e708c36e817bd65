// SPDX-License-Identifier: BSD-3-Clause
// The wire format, byte by byte: what is written here is what other releases will meet.
#include "wire/message.hpp"

#include "base/words.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace offpath::wire {
namespace {

constexpr Kind kKinds[] = {Kind::hello, Kind::pull,    Kind::data,  Kind::done,    Kind::fail, Kind::lost,
                           Kind::batch, Kind::request, Kind::reply, Kind::push,    Kind::ping, Kind::pong,
                           Kind::coded, Kind::task,    Kind::fetch, Kind::arrived, Kind::gone};

std::vector<uint8_t> bytes_of(const Message& message) {
  uint8_t out[kMaxMessageBytes];
  const size_t length = encode(message, out);
  return {out, out + length};
}

std::vector<uint8_t> from_hex(const std::string& text) {
  std::vector<uint8_t> out;
  std::string digits;
  for (const char c : text) {
    if (c == ' ') continue;
    digits += c;
    if (digits.size() < 2) continue;
    out.push_back(static_cast<uint8_t>(std::stoi(digits, nullptr, 16)));
    digits.clear();
  }
  return out;
}

// Every field a recognizable value; decode gives back only those the kind names.
Message full(Kind kind) {
  Message m;
  m.kind = kind;
  for (size_t i = 0; i < m.team.bytes.size(); ++i) m.team.bytes[i] = static_cast<uint8_t>(0xA0 + i);
  m.channel = Channel::calls;
  m.number = 0x1112131415161718;
  m.from = 0x21222324;
  m.to = 0x31323334;
  m.tag = 0x41424344;
  m.status = -7;
  m.pull_id = 0x5152535455565758;
  m.bytes = 0x0000060708090A0B;
  m.offset = 0x0000050403020100;
  m.codecs = 0x61626364;
  m.length = 0x00717273;
  m.check = 0x81828384;
  m.codec = 0x91;
  m.width = 0x92;
  m.decode_ns = 0x7172737475767778;
  m.waited_ns = 0x9192939495969798;
  m.word = Word::need;
  m.chunk_bytes = 0xA1A2A3A4;
  m.digest = 0xB1B2B3B4B5B6B7B8;
  m.rate = 0xC1C2C3C4C5C6C7C8;
  m.first = 0xD1D2D3D4;
  m.count = 0xE1E2E3E4;
  m.part = 0xF1F2F3F4;
  return m;
}

struct Golden {
  Kind kind;
  const char* hex;
};

const Golden kGolden[] = {
    {Kind::hello, "4f70 11 01 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 01 1817161514131211 24232221 34333231"},
    {Kind::pull,
     "4f70 11 02 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 01 1817161514131211 24232221 34333231 44434241 "
     "5857565554535251 0b0a090807060000 0001020304050000 64636261"},
    {Kind::data, "4f70 11 03 5857565554535251 0b0a090807060000 0001020304050000"},
    {Kind::done,
     "4f70 11 04 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 01 1817161514131211 24232221 34333231 44434241 f9ffffff "
     "7877767574737271"},
    {Kind::fail, "4f70 11 05 5857565554535251 f9ffffff"},
    {Kind::lost, "4f70 11 06 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 01 1817161514131211 24232221 34333231 f9ffffff"},
    {Kind::batch, "4f70 11 07"},
    {Kind::request, "4f70 11 08 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 01 1817161514131211 24232221 34333231"},
    {Kind::reply, "4f70 11 09 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 01 1817161514131211 24232221 34333231 f9ffffff"},
    {Kind::push, "4f70 11 0a a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 01 1817161514131211 24232221 34333231 44434241"},
    {Kind::ping, "4f70 11 0b 9897969594939291"},
    {Kind::pong, "4f70 11 0c 9897969594939291"},
    {Kind::coded, "4f70 11 0d 5857565554535251 0b0a090807060000 0001020304050000 73727100 84838281 91 92"},
    {Kind::task,
     "4f70 11 0e a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 01 1817161514131211 24232221 34333231 44434241 f9ffffff 64636261 06 "
     "a4a3a2a1 b8b7b6b5b4b3b2b1 c8c7c6c5c4c3c2c1 d4d3d2d1 e4e3e2e1"},
    {Kind::fetch,
     "4f70 11 0f a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 01 1817161514131211 24232221 34333231 44434241 "
     "5857565554535251 0b0a090807060000 64636261 f4f3f2f1 d4d3d2d1 e4e3e2e1"},
    {Kind::arrived,
     "4f70 11 10 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 01 1817161514131211 24232221 34333231 44434241 "
     "e4e3e2e1"},
    {Kind::gone, "4f70 11 11 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf 01 1817161514131211 24232221 34333231 f9ffffff"},
};

TEST(Message, GoldenBytes) {
  for (const Golden& golden : kGolden) {
    const auto expected = from_hex(golden.hex);
    EXPECT_EQ(bytes_of(full(golden.kind)), expected) << "kind " << static_cast<int>(golden.kind);
    const auto back = decode(expected);
    ASSERT_TRUE(back.ok()) << back.status().text();
    EXPECT_EQ(bytes_of(back.value()), expected);
  }
}

TEST(Message, GoldenLengths) {
  const size_t lengths[] = {37, 69, 28, 53, 16, 41, 4, 37, 41, 41, 12, 12, 38, 78, 73, 45, 41};
  for (size_t i = 0; i < std::size(kKinds); ++i) EXPECT_EQ(bytes_of(full(kKinds[i])).size(), lengths[i]);
  EXPECT_EQ(kMaxMessageBytes, 80U);
}

// Forgets what the kind does not carry.
Message trimmed(const Message& m) {
  const bool chunk = m.kind == Kind::data || m.kind == Kind::coded;
  const bool team =
      !chunk && m.kind != Kind::fail && m.kind != Kind::batch && m.kind != Kind::ping && m.kind != Kind::pong;
  const bool status = m.kind == Kind::done || m.kind == Kind::fail || m.kind == Kind::lost || m.kind == Kind::reply ||
                      m.kind == Kind::task || m.kind == Kind::gone;
  const bool fetch = m.kind == Kind::fetch;
  const bool pull = m.kind == Kind::pull || fetch || chunk || m.kind == Kind::fail;
  Message out;
  out.kind = m.kind;
  if (team) out.team = m.team, out.channel = m.channel, out.number = m.number, out.from = m.from, out.to = m.to;
  if (m.kind == Kind::pull || m.kind == Kind::done || m.kind == Kind::push || m.kind == Kind::arrived || fetch)
    out.tag = m.tag;
  if (status) out.status = m.status;
  if (m.kind == Kind::done) out.decode_ns = m.decode_ns;
  if (m.kind == Kind::ping || m.kind == Kind::pong) out.waited_ns = m.waited_ns;
  if (pull) out.pull_id = m.pull_id;
  if (pull && m.kind != Kind::fail) out.bytes = m.bytes;
  if (chunk || m.kind == Kind::pull) out.offset = m.offset;
  if (m.kind == Kind::pull || fetch || m.kind == Kind::task) out.codecs = m.codecs;
  if (fetch) out.part = m.part, out.first = m.first, out.count = m.count;
  if (m.kind == Kind::arrived) out.count = m.count;
  if (m.kind == Kind::task) {
    out.tag = m.tag, out.word = m.word, out.chunk_bytes = m.chunk_bytes, out.digest = m.digest, out.rate = m.rate;
    out.first = m.first, out.count = m.count;
  }
  if (m.kind == Kind::coded) out.length = m.length, out.check = m.check, out.codec = m.codec, out.width = m.width;
  return out;
}

TEST(Message, RandomOnesSurviveTheRoundTrip) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    Message m;
    m.kind = kKinds[random() % std::size(kKinds)];
    for (uint8_t& byte : m.team.bytes) byte = static_cast<uint8_t>(random());
    m.channel = static_cast<Channel>(random() % 3), m.number = random(), m.pull_id = random();
    m.from = static_cast<uint32_t>(random()), m.to = static_cast<uint32_t>(random());
    m.tag = static_cast<uint32_t>(random());
    m.status = -static_cast<int32_t>(random() % 13);
    m.bytes = random() % (kMaxBlockBytes + 1);
    m.offset = m.bytes == 0 ? 0 : random() % (m.bytes + 1);
    m.codecs = static_cast<uint32_t>(random()), m.check = static_cast<uint32_t>(random());
    m.length = static_cast<uint32_t>(random() % (std::min<uint64_t>(m.bytes - m.offset, UINT32_MAX) + 1));
    m.codec = static_cast<uint8_t>(random()), m.width = static_cast<uint8_t>(random());
    m.word = static_cast<Word>(1 + random() % 8), m.digest = random(), m.rate = random();
    m.chunk_bytes = static_cast<uint32_t>(random()), m.part = static_cast<uint32_t>(random());
    m.first = static_cast<uint32_t>(random()), m.count = static_cast<uint32_t>(random());
    const auto back = decode(bytes_of(m));
    ASSERT_TRUE(back.ok()) << back.status().text();
    ASSERT_EQ(back.value(), trimmed(m));
  }
}

TEST(Message, EveryOtherLengthIsRefused) {
  for (const Kind kind : kKinds) {
    const auto good = bytes_of(full(kind));
    for (size_t length = 0; length < good.size(); ++length) {
      const std::vector<uint8_t> cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_EQ(decode(cut).status().code(), OFFPATH_ERR_ARGUMENT) << length;
    }
    auto longer = good;
    for (int extra = 0; extra < 200; ++extra) {
      longer.push_back(0);
      EXPECT_EQ(decode(longer).status().code(), OFFPATH_ERR_ARGUMENT) << longer.size();
    }
  }
  EXPECT_FALSE(decode({}).ok());
}

TEST(Message, WrongHeadIsRefused) {
  for (const Kind kind : kKinds) {
    const auto good = bytes_of(full(kind));
    for (size_t at = 0; at < 3; ++at) {
      for (int value = 0; value < 256; ++value) {
        auto bad = good;
        if (bad[at] == value) continue;
        bad[at] = static_cast<uint8_t>(value);
        ASSERT_EQ(decode(bad).status().code(), OFFPATH_ERR_ARGUMENT);
      }
    }
  }
  auto newer = bytes_of(full(Kind::hello));
  newer[2] = kVersion + 1;
  EXPECT_NE(std::string(decode(newer).status().text()).find("version " + std::to_string(kVersion + 1)),
            std::string::npos);
}

TEST(Message, UnknownChannelIsRefused) {
  for (const Kind kind : {Kind::hello, Kind::pull, Kind::push, Kind::done, Kind::lost, Kind::request, Kind::reply,
                          Kind::task, Kind::fetch, Kind::gone}) {
    auto bad = bytes_of(full(kind));
    for (int value = 3; value < 256; ++value) {
      bad[4 + sizeof(TeamId)] = static_cast<uint8_t>(value);
      ASSERT_EQ(decode(bad).status().code(), OFFPATH_ERR_ARGUMENT);
    }
  }
}

TEST(Message, UnknownKindIsRefusedAtEveryLength) {
  for (int kind = 0; kind < 256; ++kind) {
    if (kind >= 1 && kind <= 17) continue;
    std::vector<uint8_t> bytes{'O', 'p', kVersion, static_cast<uint8_t>(kind)};
    while (bytes.size() <= kMaxMessageBytes) {
      ASSERT_FALSE(decode(bytes).ok()) << kind;
      bytes.push_back(0);
    }
  }
}

TEST(Message, KindsAreNotMistakenForEachOther) {
  for (const Kind real : kKinds) {
    for (const Kind said : kKinds) {
      auto bytes = bytes_of(full(real));
      if (bytes.size() == bytes_of(full(said)).size()) continue;  // lost and reply have the same fields
      bytes[3] = static_cast<uint8_t>(said);
      EXPECT_FALSE(decode(bytes).ok());
    }
  }
}

TEST(Message, ImpossibleBlocksAreRefused) {
  for (const Kind kind : {Kind::pull, Kind::data}) {
    Message m = full(kind);
    m.offset = 0;
    m.bytes = kMaxBlockBytes;
    EXPECT_TRUE(decode(bytes_of(m)).ok());
    for (const uint64_t bytes : {kMaxBlockBytes + 1, uint64_t{1} << 63, UINT64_MAX}) {
      m.bytes = bytes;
      EXPECT_EQ(decode(bytes_of(m)).status().code(), OFFPATH_ERR_ARGUMENT);
    }
  }
  Message data = full(Kind::data);
  data.bytes = 100;
  data.offset = 100;
  EXPECT_TRUE(decode(bytes_of(data)).ok());
  for (const uint64_t offset : {uint64_t{101}, kMaxBlockBytes, UINT64_MAX}) {
    data.offset = offset;
    EXPECT_FALSE(decode(bytes_of(data)).ok());
  }
  Message coded = full(Kind::coded);
  coded.bytes = 100, coded.offset = 40, coded.length = 60;
  EXPECT_TRUE(decode(bytes_of(coded)).ok());
  for (const uint32_t length : {uint32_t{61}, uint32_t{100}, UINT32_MAX}) {
    coded.length = length;
    EXPECT_FALSE(decode(bytes_of(coded)).ok());
  }
}

// A status is a small enum of the C API; anything else must not travel on into a program.
TEST(Message, UnknownStatusIsRefused) {
  for (const Kind kind : {Kind::done, Kind::fail, Kind::lost, Kind::reply, Kind::gone}) {
    Message m = full(kind);
    for (const int32_t status : {0, -1, -12}) {
      m.status = status;
      EXPECT_TRUE(decode(bytes_of(m)).ok()) << status;
    }
    for (const int32_t status : {1, 2, base::kLastError - 1, -1000, INT32_MIN, INT32_MAX}) {
      m.status = status;
      EXPECT_FALSE(decode(bytes_of(m)).ok()) << status;
    }
  }
}

}  // namespace
}  // namespace offpath::wire
