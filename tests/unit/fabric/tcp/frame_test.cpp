// SPDX-License-Identifier: BSD-3-Clause
// Frames, seals and the parser of short messages, without sockets.
#include "fabric/tcp/frame.hpp"
#include "fabric/tcp/incoming.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace offpath::fabric::tcp {
namespace {

using Buffer = std::vector<uint8_t>;
constexpr Security kSecurities[] = {Security::auth, Security::encrypt, Security::user_data_unprotected};
constexpr seal::Key kKey{1, 2, 3};

Frame frame_of(size_t header_bytes, size_t payload_bytes) {
  Frame frame;
  frame.header_bytes = static_cast<uint8_t>(header_bytes);
  frame.payload_bytes = static_cast<uint32_t>(payload_bytes);
  for (size_t i = 0; i < header_bytes; ++i) frame.header[i] = static_cast<uint8_t>(i + 1);
  return frame;
}

std::array<uint8_t, kFrameBytes> encoded(const Frame& frame) {
  std::array<uint8_t, kFrameBytes> out;
  encode(frame, out);
  return out;
}

TEST(TcpFrame, ComesBackAsItWas) {
  for (size_t header = 0; header <= kMaxHeaderBytes; ++header) {
    const Frame frame = frame_of(header, 5 * header + 1);
    EXPECT_EQ(decode(Lane::brief, encoded(frame)), frame);
    EXPECT_EQ(decode(Lane::bulk, encoded(frame)), frame);
  }
}

TEST(TcpFrame, LengthsThatDoNotBelongAreRefused) {
  EXPECT_TRUE(decode(Lane::brief, encoded(frame_of(1, kBriefBytes))));
  EXPECT_FALSE(decode(Lane::brief, encoded(frame_of(1, kBriefBytes + 1))));
  EXPECT_FALSE(decode(Lane::bulk, encoded(frame_of(1, 0))));
  EXPECT_TRUE(decode(Lane::bulk, encoded(frame_of(1, kMaxPayloadBytes))));
  EXPECT_FALSE(decode(Lane::bulk, encoded(frame_of(1, kMaxPayloadBytes + 1))));
  EXPECT_FALSE(decode(Lane::bulk, encoded(frame_of(1, UINT32_MAX))));
  auto bytes = encoded(frame_of(5, 9));
  for (const uint8_t wrong : {0, 3, 255}) {
    bytes[4] = wrong;
    EXPECT_FALSE(decode(Lane::brief, bytes)) << "kind " << int{wrong};
  }
  bytes = encoded(frame_of(5, 9));
  bytes[4] = static_cast<uint8_t>(FrameKind::bye);
  EXPECT_FALSE(decode(Lane::brief, bytes)) << "a bye says nothing else";
  for (const size_t at : {size_t{5}, size_t{6}, size_t{7}, kFieldBytes + 5, kFrameBytes - 1}) {
    bytes = encoded(frame_of(5, 9));
    bytes[at] = 200;
    EXPECT_FALSE(decode(Lane::brief, bytes)) << at;
  }
}

// A stream of three frames, as it leaves.
Buffer stream(Security security, const std::vector<Frame>& frames) {
  Sealer sealer(kKey, seal::Suite::chacha, security);
  Buffer out;
  for (const Frame& frame : frames) {
    std::array<uint8_t, kPrefixBytes> prefix;
    encode(frame, std::span(prefix).first<kFrameBytes>());
    seal_prefix(sealer, prefix);
    out.insert(out.end(), prefix.begin(), prefix.end());
    const Buffer payload(frame.payload_bytes, frame.header_bytes);
    if (payload.empty()) continue;
    Buffer sealed(payload.size() + kTagBytes);
    sealer.seal(payload, sealed.data(), sealed.data() + payload.size());
    out.insert(out.end(), sealed.begin(), sealed.end());
  }
  return out;
}

class Sink : public BriefIncoming::Sink {
 public:
  void on_frame(const Frame& frame, Bytes payload) override {
    EXPECT_EQ(payload.size(), frame.payload_bytes);
    frames.push_back(frame);
    payloads.emplace_back(payload.begin(), payload.end());
  }
  std::vector<Frame> frames;
  std::vector<Buffer> payloads;
};

const std::vector<Frame> kFrames{frame_of(3, 40), frame_of(96, 0), frame_of(0, 1)};

TEST(TcpBrief, FramesCutAnywhereAreTakenWhole) {
  for (const Security security : kSecurities) {
    const Buffer all = stream(security, kFrames);
    for (size_t cut = 0; cut <= all.size(); ++cut) {
      Sink sink;
      Opener opener(kKey, seal::Suite::chacha, security);
      size_t used = 0;
      Buffer first(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(cut));
      ASSERT_TRUE(BriefIncoming::take(first, opener, sink, used));
      ASSERT_LE(used, cut);
      Buffer rest(first.begin() + static_cast<std::ptrdiff_t>(used), first.end());
      rest.insert(rest.end(), all.begin() + static_cast<std::ptrdiff_t>(cut), all.end());
      ASSERT_TRUE(BriefIncoming::take(rest, opener, sink, used));
      ASSERT_EQ(used, rest.size());
      ASSERT_EQ(sink.frames, kFrames);
      EXPECT_EQ(sink.payloads[0], Buffer(40, 3));
      EXPECT_EQ(sink.payloads[2], Buffer(1, 0));
    }
  }
}

TEST(TcpBrief, EveryFlippedBitIsSeen) {
  for (const Security security : kSecurities) {
    const Buffer all = stream(security, kFrames);
    for (size_t bit = 0; bit < 8 * all.size(); ++bit) {
      const size_t at = bit / 8;
      Buffer changed = all;
      changed[at] = static_cast<uint8_t>(changed[at] ^ 1 << bit % 8);
      Sink sink;
      Opener opener(kKey, seal::Suite::chacha, security);
      size_t used = 0;
      ASSERT_FALSE(BriefIncoming::take(changed, opener, sink, used)) << name_of(security) << " bit " << bit;
      ASSERT_LE(sink.frames.size(), kFrames.size());
      for (size_t i = 0; i < sink.frames.size(); ++i) ASSERT_EQ(sink.frames[i], kFrames[i]);
    }
  }
}

TEST(TcpBrief, NothingIsTakenTwiceLeftOutOrMoved) {
  for (const Security security : kSecurities) {
    const Buffer one = stream(security, {frame_of(3, 0)});
    Buffer twice = one;
    twice.insert(twice.end(), one.begin(), one.end());
    Sink sink;
    size_t used = 0;
    Opener opener(kKey, seal::Suite::chacha, security);
    EXPECT_FALSE(BriefIncoming::take(twice, opener, sink, used));
    EXPECT_EQ(sink.frames.size(), 1U);
    const Buffer three = stream(security, kFrames);
    Buffer late(three.begin() + static_cast<std::ptrdiff_t>(three.size() - 2 * kPrefixBytes - 1 - kTagBytes),
                three.end());
    Opener fresh(kKey, seal::Suite::chacha, security);
    EXPECT_FALSE(BriefIncoming::take(late, fresh, sink, used));
    EXPECT_EQ(sink.frames.size(), 1U);
  }
}

TEST(TcpSeal, EncryptionHidesAndAuthenticationDoesNot) {
  const Frame frame = frame_of(90, 300);
  for (const Security security : kSecurities) {
    const Buffer bytes = stream(security, {frame});
    const bool shows_header = memmem(bytes.data(), bytes.size(), frame.header.data(), 90) != nullptr;
    const Buffer payload(300, 90);
    const bool shows_payload = memmem(bytes.data(), bytes.size(), payload.data(), payload.size()) != nullptr;
    EXPECT_EQ(shows_header, security != Security::encrypt);
    EXPECT_EQ(shows_payload, security != Security::encrypt);
  }
}

}  // namespace
}  // namespace offpath::fabric::tcp
