// SPDX-License-Identifier: BSD-3-Clause
// Compressed chunks of a sender that says whatever it likes: the operation fails with a clear error, or what was said is
// refused and counted; nothing is written elsewhere, and everything else goes on.
#include "hostile.hpp"

#include "kernels/codecs/coding.hpp"

namespace offpath::testing {
namespace {

using codecs::CodecId;

class HostileCoded : public Hostile {
 protected:
  static constexpr uint32_t kLength = 64;
  HostileCoded() {
    body.resize(4096);
    body.resize(coding.encode({CodecId::zstd, 8, 0}, plain, body));
  }
  Message coded(uint64_t offset, uint64_t sequence = 0) {
    Message m = data(kBlock, offset, sequence);
    m.kind = Kind::coded;
    m.length = kLength;
    m.check = codecs::checksum(plain);
    m.codec = static_cast<uint8_t>(CodecId::zstd);
    m.width = 8;
    return m;
  }
  void say_coded(const Message& message, fabric::Bytes payload_bytes) {
    uint8_t bytes[wire::kMaxMessageBytes];
    send(fabric::Bytes(bytes, wire::encode(message, bytes)), payload_bytes);
    settle();
  }
  codecs::Coding coding;
  const std::vector<uint8_t> plain = std::vector<uint8_t>(kLength, 0xBB);
  std::vector<uint8_t> body;
};

TEST_F(HostileCoded, TheFixtureIsHonestWhenItWantsToBe) {
  post();
  EXPECT_NE(pull_for().codecs, 0U) << "it says what it can read";
  for (const uint64_t at : {64, 0, 128}) say_coded(coded(at), body);
  say(data(kBlock, 192), 8);
  take();
  expect_untouched();
  EXPECT_EQ(outcome[0], OFFPATH_OK);
  for (uint64_t i = 0; i < kBlock; ++i) ASSERT_EQ(target[kBlock + i], 0xBB);
}

TEST_F(HostileCoded, WhatIsDamagedFailsTheOperation) {
  std::vector<std::pair<Message, std::vector<uint8_t>>> bad;
  const auto expect_damaged = [&](uint64_t number, auto change) {
    SCOPED_TRACE(number);
    post(number);
    Message message = coded(0, number);
    std::vector<uint8_t> changed = body;
    change(message, changed);
    say_coded(message, changed);
    take(number);
    EXPECT_EQ(outcome.at(number), OFFPATH_ERR_DAMAGED);
    expect_untouched();
  };
  using Body = std::vector<uint8_t>;
  uint64_t number = 0;
  expect_damaged(number++, [](Message& m, Body&) { m.check ^= 1; });
  expect_damaged(number++, [](Message& m, Body&) { m.codec = 0; });
  expect_damaged(number++, [](Message& m, Body&) { m.codec = 31; });
  expect_damaged(number++, [](Message& m, Body&) { m.codec = 255; });
  expect_damaged(number++, [](Message& m, Body&) { m.codec = static_cast<uint8_t>(CodecId::lz4); });
  for (const uint8_t width : {0, 3, 16, 255}) {
    expect_damaged(number++, [width](Message& m, Body&) { m.width = width; });
  }
  expect_damaged(number++, [](Message& m, Body&) { m.length -= 1; });
  expect_damaged(number++, [](Message&, Body& b) { b.pop_back(); });
  expect_damaged(number++, [](Message&, Body& b) { b.resize(b.size() / 2); });
  expect_damaged(number++, [](Message&, Body& b) { b.clear(); });
  expect_damaged(number++, [](Message&, Body& b) { std::fill(b.begin(), b.end(), 0xFF); });
  std::mt19937_64 random(1);
  for (int i = 0; i < 50; ++i) {
    expect_damaged(number++, [&](Message& m, Body& b) {
      b = Body(1 + random() % 60);
      for (uint8_t& byte : b) byte = static_cast<uint8_t>(random());
      m.codec = static_cast<uint8_t>(1 + random() % 4);
      m.width = static_cast<uint8_t>(1 << random() % 4);
    });
  }
  // The next operation is none the worse for it.
  heard.clear();
  post(number);
  for (const uint64_t at : {0, 64, 128}) say_coded(coded(at, number), body);
  say(data(kBlock, 192, number), 8);
  take(number);
  EXPECT_EQ(outcome[number], OFFPATH_OK);
}

TEST_F(HostileCoded, WhatHasNoPlaceIsRefused) {
  post();
  const uint64_t before = honest->refused_count();
  client_memory->writes = 0;
  Message m = coded(0);
  m.length = 0;
  say_coded(m, body);
  m.length = 65;  // longer than a chunk may be
  say_coded(m, body);
  m = coded(0), m.bytes = kBlock + 1;
  say_coded(m, body);
  m = coded(kBlock - 63);
  say_coded(m, body);
  m = coded(UINT64_MAX - 3);
  say_coded(m, body);
  say_coded(coded(0), std::vector<uint8_t>(kLength + 1, 1));  // longer than what it means
  expect_untouched();
  EXPECT_EQ(honest->refused_count() - before, 6U);
  EXPECT_EQ(client_memory->writes, 0);
  m = coded(0), m.pull_id ^= 1;
  say_coded(m, body);  // of nobody: ignored
  EXPECT_EQ(outcome.count(0), 0U);
  finish_well();
}

}  // namespace
}  // namespace offpath::testing
