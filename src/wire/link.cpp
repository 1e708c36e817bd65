// SPDX-License-Identifier: BSD-3-Clause
#include "wire/link.hpp"

#include "base/fields.hpp"

namespace offpath::wire {

using base::Status;

namespace {
constexpr uint8_t kMagic = 'L';
constexpr size_t kEntryHeadBytes = 12;

constexpr auto kFields = [](auto&& codec, auto& message) {
  return codec(message.client, message.ranges, message.status, message.number, message.address, message.bytes);
};

}  // namespace

void encode(const LinkMessage& message, std::span<uint8_t, kLinkMessageBytes> out) {
  base::FieldWriter writer(out.data());
  writer(kMagic, kLinkWireVersion, message.kind, base::Gap<1>());
  kFields(writer, message);
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
  LinkMessage message;
  const uint8_t kind = in[2];
  message.kind = static_cast<LinkKind>(kind);
  kFields(base::FieldReader(in.subspan(4)), message);
  if (kind < static_cast<uint8_t>(LinkKind::get) || kind > static_cast<uint8_t>(LinkKind::round) ||
      message.bytes > kMaxAccessBytes || message.ranges > kMaxAccessRanges || !base::is_known_code(message.status)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "message of kind %u on a link has impossible values", kind);
  }
  return message;
}

void add_entry(std::vector<uint8_t>& stream, EntryKind kind, uint32_t client, std::span<const uint8_t> body) {
  const size_t at = stream.size();
  stream.resize(at + kEntryHeadBytes);
  base::FieldWriter writer(&stream[at]);
  writer(kind, client, static_cast<uint32_t>(body.size()));
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
