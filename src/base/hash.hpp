// SPDX-License-Identifier: BSD-3-Clause
// Numbers that differ where bytes differ (FNV-1a). Not for what an attacker may choose: libsodium has hashes for that,
// but is not loaded into programs.
#pragma once

#include <cstdint>
#include <span>

namespace offpath::base {

inline constexpr uint64_t kHashOfNothing = 0xcbf29ce484222325u;

// `hash`: of what came before.
inline uint64_t hash_on(uint64_t hash, std::span<const uint8_t> bytes) {
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

}  // namespace offpath::base
