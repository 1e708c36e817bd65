// SPDX-License-Identifier: BSD-3-Clause
#include "collective/record.hpp"

#include "base/words.hpp"
#include "collective/collective.hpp"
#include "kernels/reduce.hpp"

#include <algorithm>

namespace offpath::collective {
namespace {

using base::Result;
using base::Status;

bool is_known(const CollectiveRecord& head) {
  return base::is_word<offpath_collective_kind_t>(head.kind) && base::is_word<offpath_algorithm_t>(head.algorithm) &&
         base::is_word<offpath_operator_t>(head.op) && base::is_word<offpath_element_t>(head.element) &&
         !kernels::one_sided_only(static_cast<offpath_operator_t>(head.op));
}

}  // namespace

std::vector<uint8_t> encode(const Collective& collective, size_t room_behind) {
  const CollectiveRecord head{.kind = static_cast<uint32_t>(collective.kind),
                              .algorithm = static_cast<uint32_t>(collective.algorithm),
                              .root = collective.root,
                              .op = static_cast<uint32_t>(collective.reduction.op),
                              .element = static_cast<uint32_t>(collective.reduction.element),
                              .send_count = static_cast<uint32_t>(collective.send.size()),
                              .recv_count = static_cast<uint32_t>(collective.recv.size()),
                              .counts_count = static_cast<uint32_t>(collective.counts_bytes.size()),
                              .layouts_count = static_cast<uint32_t>(collective.layouts.size()),
                              .ranges_count = static_cast<uint32_t>(memory::count_ranges(collective.layouts))};
  std::vector<uint8_t> out;
  out.reserve(sizeof(head) + (collective.send.size() + collective.recv.size()) * sizeof(Block) +
              collective.counts_bytes.size() * sizeof(uint64_t) +
              collective.layouts.size() * sizeof(memory::LayoutRecord) + head.ranges_count * sizeof(memory::Range) +
              room_behind);
  base::RecordWriter writer(out);
  writer.write(head);
  writer.write_all(std::span<const Block>(collective.send));
  writer.write_all(std::span<const Block>(collective.recv));
  writer.write_all(std::span<const uint64_t>(collective.counts_bytes));
  memory::write_layouts(collective.layouts, writer);
  return out;
}

Result<Collective> decode(std::span<const uint8_t> record) {
  base::RecordReader reader(record);
  CollectiveRecord head{};
  Collective out;
  if (!reader.read(head)) return Status::error(OFFPATH_ERR_ARGUMENT, "a collective's record is cut short");
  if (!is_known(head)) {
    return Status::error(OFFPATH_ERR_ARGUMENT,
                         "unknown collective: kind %u, algorithm %u, operator %u, element type %u", head.kind,
                         head.algorithm, head.op, head.element);
  }
  out.kind = static_cast<offpath_collective_kind_t>(head.kind);
  out.algorithm = static_cast<offpath_algorithm_t>(head.algorithm);
  out.root = head.root;
  out.reduction = {static_cast<offpath_operator_t>(head.op), static_cast<offpath_element_t>(head.element)};
  if (reader.read_all(out.send, head.send_count) && reader.read_all(out.recv, head.recv_count) &&
      reader.read_all(out.counts_bytes, head.counts_count) &&
      memory::read_layouts(reader, head.layouts_count, head.ranges_count, out.layouts)) {
    return out;
  }
  return Status::error(OFFPATH_ERR_ARGUMENT, "a collective's arrays lie outside the segment, or do not fit together");
}

}  // namespace offpath::collective
