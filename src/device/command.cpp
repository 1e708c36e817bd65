// SPDX-License-Identifier: BSD-3-Clause
#include "device/command.hpp"

#include "base/bytes.hpp"

namespace offpath::device {

using base::ByteReader;
using base::ByteWriter;
using base::Result;
using base::Status;

void encode_header(const FrameHeader& header, std::span<uint8_t, kFrameHeaderBytes> out) {
  ByteWriter writer(out.data());
  writer.number(static_cast<uint8_t>(kProtocolVersion));
  writer.number(static_cast<uint8_t>(header.kind));
  writer.number(uint16_t{0});
  writer.number(header.body_bytes);
  writer.number(header.id);
}

Result<FrameHeader> decode_header(std::span<const uint8_t, kFrameHeaderBytes> in) {
  ByteReader reader(in.data());
  const auto version = reader.number<uint8_t>();
  const auto kind = reader.number<uint8_t>();
  reader.skip(2);
  FrameHeader header;
  header.kind = static_cast<Kind>(kind);
  header.body_bytes = reader.number<uint32_t>();
  header.id = reader.number<uint64_t>();
  if (version != kProtocolVersion) {
    return Status::error(OFFPATH_ERR_ARGUMENT,
                         "the other side of a device's channel speaks version %u, not %u. Install them together",
                         version, kProtocolVersion);
  }
  if (kind < static_cast<uint8_t>(Kind::hello) || kind > static_cast<uint8_t>(Kind::fate)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "frame of unknown kind %u on a device's channel", kind);
  }
  if (header.body_bytes > kMaxBodyBytes) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "frame of %u bytes on a device's channel (limit %u)", header.body_bytes,
                         kMaxBodyBytes);
  }
  return header;
}

void encode(const Command& command, std::span<uint8_t, Command::kBytes> out) {
  ByteWriter writer(out.data());
  writer.number(command.after);
  for (const uint64_t word : command.words) writer.number(word);
}

Command decode_command(const FrameHeader& header, std::span<const uint8_t, Command::kBytes> in) {
  ByteReader reader(in.data());
  Command command;
  command.kind = header.kind;
  command.id = header.id;
  command.after = reader.number<uint64_t>();
  for (uint64_t& word : command.words) word = reader.number<uint64_t>();
  return command;
}

void encode(const Answer& answer, std::span<uint8_t, Answer::kBytes> out) {
  ByteWriter writer(out.data());
  writer.number(static_cast<int32_t>(answer.status));
  writer.zeros(12);
  writer.text(answer.text);
}

Answer decode_answer(std::span<const uint8_t, Answer::kBytes> in) {
  ByteReader reader(in.data());
  Answer answer;
  answer.status = base::known_code(reader.number<int32_t>());
  reader.skip(12);
  reader.text(answer.text);
  return answer;
}

const char* to_string(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::software:
      return "software";
    case DeviceKind::emulated:
      return "emulated";
    case DeviceKind::remote:
      return "remote";
  }
  return "unknown";
}

void encode(const Description& description, std::span<uint8_t, Description::kBytes> out) {
  ByteWriter writer(out.data());
  writer.number(description.version);
  writer.number(static_cast<int32_t>(description.status));
  writer.number(static_cast<uint32_t>(description.kind));
  writer.number(description.machine);
  writer.number(description.cores);
  writer.number(description.max_clients);
  writer.number(description.process);
  writer.zeros(4);
  writer.number(description.heap_address);
  writer.number(description.heap_bytes);
  writer.number(description.segment_bytes);
  writer.zeros(8);
  writer.text(description.system);
  writer.text(description.text);
}

Result<Description> decode_description(std::span<const uint8_t, Description::kBytes> in) {
  ByteReader reader(in.data());
  Description description;
  description.version = reader.number<uint32_t>();
  description.status = base::known_code(reader.number<int32_t>());
  const auto kind = reader.number<uint32_t>();
  description.kind = static_cast<DeviceKind>(kind);
  description.machine = reader.number<uint32_t>();
  description.cores = reader.number<uint32_t>();
  description.max_clients = reader.number<uint32_t>();
  description.process = reader.number<uint32_t>();
  reader.skip(4);
  description.heap_address = reader.number<uint64_t>();
  description.heap_bytes = reader.number<uint64_t>();
  description.segment_bytes = reader.number<uint64_t>();
  reader.skip(8);
  reader.text(description.system);
  reader.text(description.text);
  if (description.version != kProtocolVersion) {
    return Status::error(OFFPATH_ERR_NO_SERVICE,
                         "executor and library are of different releases. Install them together");
  }
  if (description.status != OFFPATH_OK) return Status::error(description.status, "%s", description.text);
  constexpr uint64_t kMaxHeap = uint64_t{1} << 46;
  if (kind < 1 || kind > 3 || description.heap_address % 64 != 0 || description.heap_bytes == 0 ||
      description.heap_bytes > kMaxHeap || description.heap_address > UINT64_MAX - description.heap_bytes ||
      description.segment_bytes > 2 * kMaxHeap) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "an executor describes itself with values that make no sense");
  }
  return description;
}

void encode(const Fate& fate, std::span<uint8_t, Fate::kBytes> out) {
  ByteWriter writer(out.data());
  writer.number(fate.signal);
  writer.number(fate.exit_status);
  writer.number(fate.entry);
  writer.number(fate.fault_address);
  writer.number(fate.image);
  writer.number(fate.offset);
  writer.zeros(8);
}

Fate decode_fate(std::span<const uint8_t, Fate::kBytes> in) {
  ByteReader reader(in.data());
  Fate fate;
  fate.signal = reader.number<int32_t>();
  fate.exit_status = reader.number<int32_t>();
  fate.entry = reader.number<uint64_t>();
  fate.fault_address = reader.number<uint64_t>();
  fate.image = reader.number<uint64_t>();
  fate.offset = reader.number<uint64_t>();
  return fate;
}

}  // namespace offpath::device
