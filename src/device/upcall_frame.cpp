// SPDX-License-Identifier: BSD-3-Clause
#include "device/upcall_frame.hpp"

#include "base/bytes.hpp"

namespace offpath::device {

using base::ByteReader;
using base::ByteWriter;
using base::Result;
using base::Status;

namespace {
constexpr size_t kHeadBytes = 16;
}  // namespace

std::vector<uint8_t> encode(const UpcallFrame& frame) {
  std::vector<uint8_t> body(kHeadBytes + 8 * (frame.inputs.size() + frame.outputs.size()) + frame.args.size());
  ByteWriter writer(body.data());
  writer.number(frame.code);
  writer.number(static_cast<uint32_t>(frame.args.size()));
  writer.number(static_cast<uint32_t>(frame.inputs.size() / 2));
  writer.number(static_cast<uint32_t>(frame.outputs.size() / 2));
  for (const uint64_t word : frame.inputs) writer.number(word);
  for (const uint64_t word : frame.outputs) writer.number(word);
  std::copy(frame.args.begin(), frame.args.end(), body.end() - static_cast<ptrdiff_t>(frame.args.size()));
  return body;
}

Result<UpcallFrame> decode_upcall(std::span<const uint8_t> body) {
  const Status malformed = Status::error(OFFPATH_ERR_ARGUMENT, "malformed upcall of %zu bytes", body.size());
  if (body.size() < kHeadBytes) return malformed;
  ByteReader reader(body.data());
  UpcallFrame frame;
  frame.code = reader.number<uint32_t>();
  const auto args = reader.number<uint32_t>();
  const auto inputs = reader.number<uint32_t>();
  const auto outputs = reader.number<uint32_t>();
  if (args > OFFPATH_UPCALL_MAX_ARGS_BYTES || inputs > OFFPATH_UPCALL_MAX_SPANS || outputs > OFFPATH_UPCALL_MAX_SPANS ||
      body.size() != kHeadBytes + 16 * (size_t{inputs} + outputs) + args) {
    return malformed;
  }
  uint64_t total = 0;
  const auto read_spans = [&](uint32_t count, std::vector<uint64_t>& spans) {
    for (uint32_t i = 0; i < count; ++i) {
      spans.push_back(reader.number<uint64_t>());
      spans.push_back(reader.number<uint64_t>());
      total = spans.back() > kMaxUpcallBytes ? kMaxUpcallBytes + 1 : total + spans.back();
    }
  };
  read_spans(inputs, frame.inputs);
  read_spans(outputs, frame.outputs);
  if (total > kMaxUpcallBytes) return malformed;
  frame.args.assign(body.end() - args, body.end());
  return frame;
}

}  // namespace offpath::device
