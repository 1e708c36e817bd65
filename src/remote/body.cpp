// SPDX-License-Identifier: BSD-3-Clause
// The bytes of a Wanted, little endian:
//   u64 window, u64 offset, u64 bytes, u64 number, u8 kind, u8 operator, u8 element, u8 0, u32 ranges (0: contiguous)
//   with ranges: u64 size, i64 extent, ranges x (i64 offset, u64 bytes)
//   the data of short ones that send
#include "base/bytes.hpp"
#include "base/words.hpp"
#include "remote/wanted.hpp"

#include <algorithm>

namespace offpath::remote {
namespace {

using base::Status;

static_assert(uint64_t{2} * 32 <= kInlineBytes, "what a compare and swap sends is inline whatever the element");

size_t layout_bytes(size_t ranges) { return ranges == 0 ? 0 : kLayoutBytes + ranges * kRangeBytes; }

}  // namespace

size_t encoded_bytes(const Wanted& wanted) {
  return kHeadBytes + layout_bytes(wanted.contiguous ? 0 : wanted.layout.ranges.size());
}

void encode(const Wanted& wanted, std::span<const uint8_t> data, std::vector<uint8_t>& out) {
  const auto ranges = static_cast<uint32_t>(wanted.contiguous ? 0 : wanted.layout.ranges.size());
  const size_t before = out.size(), head = encoded_bytes(wanted);
  out.resize(before + head + data.size());
  base::ByteWriter writer(&out[before]);
  writer.number(wanted.window);
  writer.number(wanted.offset);
  writer.number(wanted.bytes);
  writer.number(wanted.number);
  writer.number(static_cast<uint8_t>(wanted.kind));
  writer.number(static_cast<uint8_t>(wanted.reduction.op));
  writer.number(static_cast<uint8_t>(wanted.reduction.element));
  writer.number(uint8_t{0});
  writer.number(ranges);
  if (ranges > 0) {
    writer.number(wanted.layout.size_bytes);
    writer.number(wanted.layout.extent_bytes);
    for (const memory::Range& range : wanted.layout.ranges) {
      writer.number(range.offset);
      writer.number(range.bytes);
    }
  }
  std::copy(data.begin(), data.end(), out.begin() + static_cast<std::ptrdiff_t>(before + head));
}

base::Result<Decoded> decode(std::span<const uint8_t> body, Data data) {
  const auto wrong_length = [&] {
    return Status::error(OFFPATH_ERR_ARGUMENT, "a one-sided request has a wrong length of %zu bytes", body.size());
  };
  if (body.size() < kHeadBytes) return wrong_length();
  base::ByteReader reader(body.data());
  Decoded out;
  Wanted& wanted = out.wanted;
  wanted.window = reader.number<uint64_t>();
  wanted.offset = reader.number<uint64_t>();
  wanted.bytes = reader.number<uint64_t>();
  wanted.number = reader.number<uint64_t>();
  const auto kind = reader.number<uint8_t>();
  const auto op = reader.number<uint8_t>();
  const auto element = reader.number<uint8_t>();
  if (!base::is_word<offpath_remote_kind_t>(kind) || !base::is_word<offpath_operator_t>(op) ||
      !base::is_word<offpath_element_t>(element)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "unknown one-sided request: kind %u, operator %u, element type %u", kind,
                         op, element);
  }
  wanted.kind = static_cast<offpath_remote_kind_t>(kind);
  wanted.reduction = {static_cast<offpath_operator_t>(op), static_cast<offpath_element_t>(element)};
  const auto reserved = reader.number<uint8_t>();
  const auto ranges = reader.number<uint32_t>();
  const size_t before_data = kHeadBytes + layout_bytes(ranges);
  if (reserved != 0 || ranges > kMaxRanges || body.size() < before_data) return wrong_length();
  wanted.contiguous = ranges == 0;
  if (!wanted.contiguous) {
    wanted.layout.size_bytes = reader.number<uint64_t>();
    wanted.layout.extent_bytes = reader.number<int64_t>();
    wanted.layout.ranges.resize(ranges);
    for (memory::Range& range : wanted.layout.ranges) {
      range.offset = reader.number<int64_t>();
      range.bytes = reader.number<uint64_t>();
    }
  }
  if (Status status = check(wanted); !status.ok()) return status;
  out.data = body.subspan(before_data);
  const bool follows = data == Data::may_follow && out.data.empty();
  if (!follows && out.data.size() != (is_short(wanted) ? data_bytes(wanted) : 0)) return wrong_length();
  return out;
}

}  // namespace offpath::remote
