// SPDX-License-Identifier: BSD-3-Clause
#include "memory/memory.hpp"

namespace offpath::memory {

using base::Status;

Status Memory::gather(void* to, std::span<const Range> ranges) const {
  auto* at = static_cast<uint8_t*>(to);
  for (const Range& range : ranges) {
    if (const Status status = read(at, static_cast<uint64_t>(range.offset), range.bytes); !status.ok()) return status;
    at += range.bytes;
  }
  return {};
}

Status Memory::scatter(std::span<const Range> ranges, const void* from) const {
  const auto* at = static_cast<const uint8_t*>(from);
  for (const Range& range : ranges) {
    if (const Status status = write(static_cast<uint64_t>(range.offset), at, range.bytes); !status.ok()) return status;
    at += range.bytes;
  }
  return {};
}

uint8_t* Memory::view(uint64_t, size_t) const { return nullptr; }

}  // namespace offpath::memory
