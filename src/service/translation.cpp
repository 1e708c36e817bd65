// SPDX-License-Identifier: BSD-3-Clause
#include "service/translation.hpp"

namespace offpath::service {
namespace {

std::vector<ops::Block> translate_blocks(const std::vector<session::BlockRecord>& records) {
  std::vector<ops::Block> out;
  out.reserve(records.size());
  for (const session::BlockRecord& record : records) {
    const uint32_t layout = record.layout == 0 ? engine::kClient : record.layout - 1;
    out.push_back({record.peer, record.tag, {record.address, 0, layout}, record.bytes});
  }
  return out;
}

}  // namespace

base::Result<ops::Collective> translate(const session::CollectiveArguments& arguments, bool copy_own_blocks) {
  const session::CollectiveRecord& head = arguments.head;
  if (head.kind < OFFPATH_EXCHANGE || head.kind > OFFPATH_EXSCAN || head.algorithm > OFFPATH_ALGORITHM_DISSEMINATION ||
      head.op > OFFPATH_OP_MAXLOC || head.element > OFFPATH_ELEMENT_F64_F64) {
    return base::Status::error(OFFPATH_ERR_ARGUMENT,
                               "unknown collective: kind %u, algorithm %u, operator %u, element type %u", head.kind,
                               head.algorithm, head.op, head.element);
  }
  ops::Collective out;
  out.kind = static_cast<offpath_collective_kind_t>(head.kind);
  out.algorithm = static_cast<offpath_algorithm_t>(head.algorithm);
  out.root = head.root;
  out.reduction = {static_cast<offpath_operator_t>(head.op), static_cast<offpath_element_t>(head.element)};
  out.send = translate_blocks(arguments.send);
  out.recv = translate_blocks(arguments.recv);
  out.counts_bytes = arguments.counts_bytes;
  out.copy_own_blocks = copy_own_blocks;
  size_t next_range = 0;
  for (const session::LayoutRecord& record : arguments.layouts) {
    engine::Layout& layout = out.layouts.emplace_back();
    layout.size_bytes = record.size_bytes;
    layout.extent_bytes = record.extent_bytes;
    layout.ranges.reserve(record.ranges_count);
    for (uint32_t i = 0; i < record.ranges_count; ++i, ++next_range) {
      layout.ranges.push_back({arguments.ranges[next_range].offset, arguments.ranges[next_range].bytes});
    }
  }
  return out;
}

}  // namespace offpath::service
