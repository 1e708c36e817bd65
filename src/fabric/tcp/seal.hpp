// SPDX-License-Identifier: BSD-3-Clause
// Seals: what proves that a frame is the next one of its connection, and hides it where that was asked for. Pure.
// ChaCha20-Poly1305 under a key of one direction of one connection, with the number of what was sealed as nonce.
#pragma once

#include "base/result.hpp"
#include "fabric/tcp/frame.hpp"

#include <string>

namespace offpath::fabric::tcp {

// OFFPATH_FABRIC_SECURITY.
enum class Security : uint8_t {
  auth = 1,  // prefixes and short payloads cannot be changed
  full = 2,  // long ones neither
  encrypt = 3
};
const char* name_of(Security security);
// Empty: the default.
base::Result<Security> parse_security(const std::string& text);

using SessionKey = std::array<uint8_t, 32>;
using Prefix = std::span<uint8_t, kPrefixBytes>;

// A payload that is sealed is followed by a tag of its own. On the brief lane there are messages: all are sealed.
inline size_t payload_tag_bytes(Security security, Lane lane) {
  return security == Security::auth && lane == Lane::bulk ? 0 : kTagBytes;
}

class Sealer {
 public:
  Sealer(Security security, Lane lane, const SessionKey& key) : security_(security), lane_(lane), key_(key) {}
  size_t tag_bytes() const { return payload_tag_bytes(security_, lane_); }
  // In place; its tag is written.
  void seal_prefix(Prefix prefix);
  // Where there is a tag. To `out`: as many bytes, and their tag.
  void seal_payload(Bytes payload, uint8_t* out);

 private:
  Security security_;
  Lane lane_;
  SessionKey key_;
  uint64_t number_ = 0;
};

class Opener {
 public:
  Opener(Security security, Lane lane, const SessionKey& key) : security_(security), lane_(lane), key_(key) {}
  size_t tag_bytes() const { return payload_tag_bytes(security_, lane_); }
  // In place. False: it is not the next one of this connection; then the connection is of no use any more.
  bool open_prefix(Prefix prefix);
  bool open_payload(std::span<uint8_t> payload, const uint8_t* tag);
  // Instead, of a payload that nobody wants.
  void pass_payload() { number_ += tag_bytes() == 0 ? 0 : 1; }

 private:
  Security security_;
  Lane lane_;
  SessionKey key_;
  uint64_t number_ = 0;
};

}  // namespace offpath::fabric::tcp
