// SPDX-License-Identifier: BSD-3-Clause
// Frames: what stands before each payload on a connection. Pure. A prefix has a fixed length: fields, the message's
// header filled up with zeros, and a tag (seal/seal.hpp). Little endian. docs/design/0016-fabric-tcp.md.
#pragma once

#include "fabric/fabric.hpp"
#include "seal/seal.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace offpath::fabric::tcp {

using seal::kTagBytes;
using seal::Opener;
using seal::Sealer;
using seal::Security;

// The two connections between a pair of endpoints.
enum class Lane : uint8_t {
  brief = 0,  // short messages, whole
  bulk = 1    // long payloads, read when their place is named
};
inline constexpr size_t kLanes = 2;

inline constexpr size_t kFieldBytes = 8;
inline constexpr size_t kFrameBytes = kFieldBytes + kMaxHeaderBytes;
inline constexpr size_t kPrefixBytes = kFrameBytes + kTagBytes;
inline constexpr size_t kBriefBytes = kShortBytes;  // longest payload on the brief lane
inline constexpr size_t kMaxPayloadBytes = size_t{1} << 30;

enum class FrameKind : uint8_t {
  message = 1,
  bye = 2  // nothing comes behind it
};

struct Frame {
  FrameKind kind = FrameKind::message;
  bool tagged = true;  // the payload: a tag follows it
  uint8_t header_bytes = 0;
  uint32_t payload_bytes = 0;
  std::array<uint8_t, kMaxHeaderBytes> header{};
  size_t tail_bytes() const { return payload_bytes == 0 ? 0 : payload_bytes + (tagged ? kTagBytes : 0); }
  Bytes header_view() const { return Bytes(header).first(header_bytes); }
  auto operator<=>(const Frame&) const = default;
};

using Prefix = std::span<uint8_t, kPrefixBytes>;

void encode(const Frame& frame, std::span<uint8_t, kFrameBytes> out);
// Nothing: it is none, or does not belong on that lane.
std::optional<Frame> decode(Lane lane, std::span<const uint8_t, kFrameBytes> in);

// In place: the frame, and behind it its tag.
inline void seal_prefix(Sealer& sealer, Prefix prefix) {
  sealer.seal(prefix.first<kFrameBytes>(), prefix.data(), prefix.data() + kFrameBytes);
}
inline bool open_prefix(Opener& opener, Prefix prefix) {
  return opener.open(prefix.first<kFrameBytes>(), prefix.data() + kFrameBytes);
}

}  // namespace offpath::fabric::tcp
