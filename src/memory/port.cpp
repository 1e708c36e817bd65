// SPDX-License-Identifier: BSD-3-Clause
#include "memory/port.hpp"

#include "memory/join.hpp"

namespace offpath::memory {

Outcome Outcome::later() {
  Outcome outcome;
  outcome.later_ = true;
  return outcome;
}

Outcome Port::gather(void* to, std::span<const Range> ranges, Ticket ticket) const {
  Join join(ticket);
  auto* at = static_cast<uint8_t*>(to);
  for (const Range& range : ranges) {
    if (!join.add(read(at, static_cast<uint64_t>(range.offset), range.bytes, join.next()))) break;
    at += range.bytes;
  }
  return join.end();
}

Outcome Port::scatter(std::span<const Range> ranges, const void* from, Ticket ticket) const {
  Join join(ticket);
  const auto* at = static_cast<const uint8_t*>(from);
  for (const Range& range : ranges) {
    if (!join.add(write(static_cast<uint64_t>(range.offset), at, range.bytes, join.next()))) break;
    at += range.bytes;
  }
  return join.end();
}

uint8_t* Port::view(uint64_t, size_t) const { return nullptr; }
uint8_t* Port::draft(uint64_t, size_t) const { return nullptr; }
size_t Port::alike(uint64_t, size_t bytes) const { return bytes; }

}  // namespace offpath::memory
