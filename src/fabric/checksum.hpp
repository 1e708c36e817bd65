// SPDX-License-Identifier: BSD-3-Clause
// What tells a damaged address from a whole one. No secret, so no key.
#pragma once

#include "fabric/fabric.hpp"

#include <sodium.h>

#include <array>

namespace offpath::fabric {

inline constexpr size_t kCheckBytes = crypto_shorthash_BYTES;

inline std::array<uint8_t, kCheckBytes> checksum(Bytes bytes) {
  constexpr uint8_t kNoKey[crypto_shorthash_KEYBYTES] = {};
  std::array<uint8_t, kCheckBytes> out{};
  crypto_shorthash(out.data(), bytes.data(), bytes.size(), kNoKey);
  return out;
}

}  // namespace offpath::fabric
