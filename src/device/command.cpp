// SPDX-License-Identifier: BSD-3-Clause
#include "device/command.hpp"

#include "base/fields.hpp"

namespace offpath::device {

using base::FieldReader;
using base::FieldWriter;
using base::Gap;
using base::Result;
using base::Status;

namespace {

// What each consists of, for both directions.
constexpr auto kHeader = [](auto&& codec, uint8_t& version, auto& header) {
  codec(version, header.kind, Gap<2>(), header.body_bytes, header.id);
};
constexpr auto kCommand = [](auto&& codec, auto& command) { codec(command.after, command.words); };
constexpr auto kAnswer = [](auto&& codec, auto& answer) { codec(answer.status, Gap<12>(), answer.text); };
constexpr auto kDescription = [](auto&& codec, auto& self) {
  codec(self.version, self.status, self.kind, self.machine, self.cores, self.max_clients, self.process, Gap<4>());
  codec(self.heap_address, self.heap_bytes, self.segment_bytes, Gap<8>(), self.system, self.text);
};
constexpr auto kFate = [](auto&& codec, auto& fate) {
  codec(fate.signal, fate.exit_status, fate.entry, fate.fault_address, fate.image, fate.offset, Gap<8>());
};

}  // namespace

void encode_header(const FrameHeader& header, std::span<uint8_t, kFrameHeaderBytes> out) {
  uint8_t version = kProtocolVersion;
  kHeader(FieldWriter(out.data()), version, header);
}

Result<FrameHeader> decode_header(std::span<const uint8_t, kFrameHeaderBytes> in) {
  uint8_t version = 0;
  FrameHeader header;
  kHeader(FieldReader(in), version, header);
  if (version != kProtocolVersion) {
    return Status::error(OFFPATH_ERR_ARGUMENT,
                         "the other side of a device's channel speaks version %u, not %u. Install them together",
                         version, kProtocolVersion);
  }
  if (header.kind < Kind::hello || header.kind > Kind::fate) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "frame of unknown kind %u on a device's channel",
                         static_cast<unsigned>(header.kind));
  }
  if (header.body_bytes > kMaxBodyBytes) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "frame of %u bytes on a device's channel (limit %u)", header.body_bytes,
                         kMaxBodyBytes);
  }
  return header;
}

void encode(const Command& command, std::span<uint8_t, Command::kBytes> out) {
  kCommand(FieldWriter(out.data()), command);
}

Command decode_command(const FrameHeader& header, std::span<const uint8_t, Command::kBytes> in) {
  Command command;
  command.kind = header.kind;
  command.id = header.id;
  kCommand(FieldReader(in), command);
  return command;
}

void encode(const Answer& answer, std::span<uint8_t, Answer::kBytes> out) { kAnswer(FieldWriter(out.data()), answer); }

Answer decode_answer(std::span<const uint8_t, Answer::kBytes> in) {
  Answer answer;
  kAnswer(FieldReader(in), answer);
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
  kDescription(FieldWriter(out.data()), description);
}

Result<Description> decode_description(std::span<const uint8_t, Description::kBytes> in) {
  Description description;
  kDescription(FieldReader(in), description);
  if (description.version != kProtocolVersion) {
    return Status::error(OFFPATH_ERR_NO_SERVICE,
                         "executor and library are of different releases. Install them together");
  }
  if (description.status != OFFPATH_OK) return Status::error(description.status, "%s", description.text);
  constexpr uint64_t kMaxHeap = uint64_t{1} << 46;
  if (description.kind < DeviceKind::software || description.kind > DeviceKind::remote ||
      description.heap_address % 64 != 0 || description.heap_bytes == 0 || description.heap_bytes > kMaxHeap ||
      description.heap_address > UINT64_MAX - description.heap_bytes || description.segment_bytes > 2 * kMaxHeap) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "an executor describes itself with values that make no sense");
  }
  return description;
}

void encode(const Fate& fate, std::span<uint8_t, Fate::kBytes> out) { kFate(FieldWriter(out.data()), fate); }

Fate decode_fate(std::span<const uint8_t, Fate::kBytes> in) {
  Fate fate;
  kFate(FieldReader(in), fate);
  return fate;
}

}  // namespace offpath::device
