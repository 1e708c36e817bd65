// SPDX-License-Identifier: BSD-3-Clause
#include "wire/batch.hpp"

namespace offpath::wire {

size_t encode_entry(const Message& message, size_t payload_bytes, std::span<uint8_t> out) {
  uint8_t header[kMaxMessageBytes];
  const size_t header_bytes = encode(message, header);
  const size_t head_bytes = kEntryOverheadBytes + header_bytes;
  if (payload_bytes > UINT32_MAX || out.size() < head_bytes || out.size() - head_bytes < payload_bytes) return 0;
  for (size_t i = 0; i < 2; ++i) out[i] = static_cast<uint8_t>(header_bytes >> (8 * i));
  for (size_t i = 0; i < 4; ++i) out[2 + i] = static_cast<uint8_t>(payload_bytes >> (8 * i));
  memcpy(out.data() + kEntryOverheadBytes, header, header_bytes);
  return head_bytes;
}

std::optional<Entry> take_entry(std::span<const uint8_t>& rest) {
  if (rest.size() < kEntryOverheadBytes) return std::nullopt;
  size_t header_bytes = 0;
  size_t payload_bytes = 0;
  for (size_t i = 0; i < 2; ++i) header_bytes |= size_t{rest[i]} << (8 * i);
  for (size_t i = 0; i < 4; ++i) payload_bytes |= size_t{rest[2 + i]} << (8 * i);
  const auto body = rest.subspan(kEntryOverheadBytes);
  if (header_bytes > body.size() || payload_bytes > body.size() - header_bytes) return std::nullopt;
  rest = body.subspan(header_bytes + payload_bytes);
  return Entry{body.first(header_bytes), body.subspan(header_bytes, payload_bytes)};
}

}  // namespace offpath::wire
