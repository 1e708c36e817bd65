// SPDX-License-Identifier: BSD-3-Clause
// MemberAddress: what a session's address says. Made by the service, carried by the front end, read by other services
// and (for counting nodes) by clients. Little endian: [service id 16][worker u32][fabric bytes u32][fabric address].
#pragma once

#include "base/result.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace offpath::session {

// At its beginning the name of its job (seal/job_key.hpp), then what tells it from the others.
using ServiceId = std::array<uint8_t, 16>;
inline constexpr size_t kJobNameBytes = 8;

struct MemberAddress {
  ServiceId service{};
  uint32_t worker = 0;
  std::vector<uint8_t> fabric;

  // So long it is when encoded.
  size_t bytes() const;
  // At most OFFPATH_ADDRESS_MAX_BYTES; longer ones are refused.
  base::Result<std::vector<uint8_t>> encode() const;
  static base::Result<MemberAddress> decode(std::span<const uint8_t> in);
};

}  // namespace offpath::session
