// SPDX-License-Identifier: BSD-3-Clause
#include "remote/record.hpp"

namespace offpath::remote {

using base::Status;

// All but the body, of which it says how long it is.
static void write_front(const Origin& origin, size_t body_bytes, std::vector<uint8_t>& out) {
  out.clear();
  base::RecordWriter writer(out);
  writer.write(RemoteRecord{origin.target, static_cast<uint32_t>(origin.layouts.size()),
                            static_cast<uint32_t>(memory::count_ranges(origin.layouts)),
                            static_cast<uint32_t>(body_bytes), origin.send, origin.result});
  memory::write_layouts(origin.layouts, writer);
}

void encode(const Origin& origin, std::vector<uint8_t>& out) {
  write_front(origin, origin.body.size(), out);
  base::RecordWriter(out).write_all(std::span<const uint8_t>(origin.body));
}

void encode(const Origin& origin, const Wanted& wanted, std::span<const uint8_t> data, std::vector<uint8_t>& out) {
  write_front(origin, encoded_bytes(wanted) + data.size(), out);
  encode(wanted, data, out);
}

base::Result<Origin> decode_origin(std::span<const uint8_t> record) {
  base::RecordReader reader(record);
  RemoteRecord head{};
  Origin out;
  if (!reader.read(head)) return Status::error(OFFPATH_ERR_ARGUMENT, "a one-sided operation's record is cut short");
  const bool fits = head.wanted_bytes <= kMaxBodyBytes &&
                    memory::read_layouts(reader, head.layouts_count, head.ranges_count, out.layouts) &&
                    reader.read_all(out.body, head.wanted_bytes);
  if (!fits) {
    return Status::error(OFFPATH_ERR_ARGUMENT,
                         "a one-sided operation's arrays lie outside the segment, or do not fit together");
  }
  out.target = head.target;
  out.send = head.send;
  out.result = head.result;
  return out;
}

}  // namespace offpath::remote
