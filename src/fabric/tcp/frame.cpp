// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tcp/frame.hpp"

#include "base/bytes.hpp"

#include <algorithm>

namespace offpath::fabric::tcp {
namespace {

bool belongs(Lane lane, const Frame& frame) {
  if (frame.kind == FrameKind::bye) return frame.tagged && frame.header_bytes == 0 && frame.payload_bytes == 0;
  if (frame.kind != FrameKind::message || frame.header_bytes > kMaxHeaderBytes) return false;
  if (lane == Lane::brief) return frame.tagged && frame.payload_bytes <= kBriefBytes;
  return frame.payload_bytes > 0 && frame.payload_bytes <= kMaxPayloadBytes;
}

}  // namespace

void encode(const Frame& frame, std::span<uint8_t, kFrameBytes> out) {
  base::ByteWriter(out.data()).number(frame.payload_bytes);
  out[4] = static_cast<uint8_t>(frame.kind);
  out[5] = frame.header_bytes;
  out[6] = frame.tagged ? 1 : 0;
  out[7] = 0;
  const auto rest = std::copy_n(frame.header.begin(), frame.header_bytes, out.begin() + kFieldBytes);
  std::fill(rest, out.end(), uint8_t{0});
}

std::optional<Frame> decode(Lane lane, std::span<const uint8_t, kFrameBytes> in) {
  Frame frame;
  frame.payload_bytes = base::ByteReader(in.data()).number<uint32_t>();
  frame.kind = static_cast<FrameKind>(in[4]);
  frame.header_bytes = in[5];
  frame.tagged = in[6] == 1;
  if (in[6] > 1 || in[7] != 0 || !belongs(lane, frame)) return std::nullopt;
  const auto header = in.subspan<kFieldBytes>();
  const auto is_zero = [](uint8_t byte) { return byte == 0; };
  if (!std::all_of(header.begin() + frame.header_bytes, header.end(), is_zero)) return std::nullopt;
  std::copy_n(header.begin(), frame.header_bytes, frame.header.begin());
  return frame;
}

}  // namespace offpath::fabric::tcp
