// SPDX-License-Identifier: BSD-3-Clause
// Batch: several messages to one worker, in one. The payload of a message of kind batch is entries one after the other:
//   u16 length of the header, u32 length of the payload, header, payload      (little endian, no padding)
// Pure, and checked like messages: an entry is taken whole or not at all.
#pragma once

#include "wire/message.hpp"

#include <optional>

namespace offpath::wire {

inline constexpr size_t kEntryOverheadBytes = 6;

struct Entry {
  std::span<const uint8_t> header;  // to be decoded; of any kind, also where that makes no sense
  std::span<const uint8_t> payload;
};

// Writes the head of an entry to `out`; the caller writes `payload_bytes` bytes behind it. Returns the bytes of the
// head; 0: the entry does not fit.
size_t encode_entry(const Message& message, size_t payload_bytes, std::span<uint8_t> out);

// Takes the first entry off `rest`. Nothing, and `rest` as it was, when that is empty or malformed.
std::optional<Entry> take_entry(std::span<const uint8_t>& rest);

}  // namespace offpath::wire
