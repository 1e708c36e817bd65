// SPDX-License-Identifier: BSD-3-Clause
#include "wire/link.hpp"

#include "base/bytes.hpp"

namespace offpath::wire {

using base::Status;

namespace {
constexpr uint8_t kMagic = 'L';
constexpr size_t kEntryHeadBytes = 12;
}  // namespace

void encode(const LinkMessage& message, std::span<uint8_t, kLinkMessageBytes> out) {
  base::ByteWriter writer(out.data());
  writer.number(kMagic);
  writer.number(kLinkWireVersion);
  writer.number(static_cast<uint8_t>(message.kind));
  writer.number(uint8_t{0});
  writer.number(message.client);
  writer.number(message.ranges);
  writer.number(message.status);
  writer.number(message.number);
  writer.number(message.address);
  writer.number(message.bytes);
}

base::Result<LinkMessage> decode_link(std::span<const uint8_t> in) {
  if (in.size() != kLinkMessageBytes || in[0] != kMagic || in[3] != 0) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "message of %zu bytes is none of a link's", in.size());
  }
  if (in[1] != kLinkWireVersion) {
    return Status::error(OFFPATH_ERR_ARGUMENT,
                         "the other end of the link speaks version %u, this one %u (host and DPU run different "
                         "releases). Install the same release on both",
                         in[1], kLinkWireVersion);
  }
  base::ByteReader reader(in.data() + 2);
  LinkMessage message;
  const auto kind = reader.number<uint8_t>();
  reader.skip(1);
  message.kind = static_cast<LinkKind>(kind);
  message.client = reader.number<uint32_t>();
  message.ranges = reader.number<uint32_t>();
  message.status = reader.number<int32_t>();
  message.number = reader.number<uint64_t>();
  message.address = reader.number<uint64_t>();
  message.bytes = reader.number<uint64_t>();
  if (kind < static_cast<uint8_t>(LinkKind::get) || kind > static_cast<uint8_t>(LinkKind::round) ||
      message.bytes > kMaxAccessBytes || message.ranges > kMaxAccessRanges || !base::is_known_code(message.status)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "message of kind %u on a link has impossible values", kind);
  }
  return message;
}

void add_entry(std::vector<uint8_t>& stream, EntryKind kind, uint32_t client, std::span<const uint8_t> body) {
  const size_t at = stream.size();
  stream.resize(at + kEntryHeadBytes);
  base::ByteWriter writer(&stream[at]);
  writer.number(static_cast<uint32_t>(kind));
  writer.number(client);
  writer.number(static_cast<uint32_t>(body.size()));
  stream.insert(stream.end(), body.begin(), body.end());
}

base::Result<std::optional<LinkEntry>> take_link_entry(std::span<const uint8_t>& rest) {
  using Taken = std::optional<LinkEntry>;
  if (rest.size() < kEntryHeadBytes) return Taken();
  base::ByteReader reader(rest.data());
  const auto kind = reader.number<uint32_t>();
  const auto client = reader.number<uint32_t>();
  const auto bytes = reader.number<uint32_t>();
  if (kind < static_cast<uint32_t>(EntryKind::hello) || kind > static_cast<uint32_t>(EntryKind::seen) ||
      bytes > kMaxEntryBytes) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "an entry of kind %u with %u bytes on a link is impossible", kind,
                         bytes);
  }
  if (bytes > rest.size() - kEntryHeadBytes) return Taken();
  const LinkEntry entry{static_cast<EntryKind>(kind), client, rest.subspan(kEntryHeadBytes, bytes)};
  rest = rest.subspan(kEntryHeadBytes + bytes);
  return Taken(entry);
}

}  // namespace offpath::wire
