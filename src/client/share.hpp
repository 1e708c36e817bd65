// SPDX-License-Identifier: BSD-3-Clause
// How much memory a client may offer to share with its service, which maps what all clients of the node offer. Pure.
#pragma once

#include "session/layout.hpp"

#include <algorithm>
#include <cstdint>

namespace offpath::client {

// Half of the address space of a process (47 bits, on x86-64 and on aarch64 with the smallest pages and tables in use).
inline constexpr uint64_t kNodeShareBytes = uint64_t{1} << 46;

// `sessions`: of the node; 0: not known.
inline uint64_t share_of(uint64_t wanted_bytes, uint32_t sessions) {
  const uint64_t bytes = std::min(wanted_bytes, kNodeShareBytes / std::max(sessions, 1U));
  return bytes / session::kHeaderBytes * session::kHeaderBytes;
}

}  // namespace offpath::client
