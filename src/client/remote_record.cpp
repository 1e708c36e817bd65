// SPDX-License-Identifier: BSD-3-Clause
#include "client/remote_record.hpp"

#include "client/enumerator.hpp"
#include "client/layout_check.hpp"
#include "client/record_writer.hpp"

#include <algorithm>

namespace offpath::client {
namespace {

using remote::Wanted;
using session::RemoteRecord;

// Precondition: the enumerators that its kind uses are such, and the layout it names is there.
Wanted wanted_of(const offpath_remote_t& r) {
  Wanted out;
  out.kind = r.kind;
  if (remote::combines(r.kind)) out.reduction.op = r.op;
  if (remote::accumulates(r.kind)) out.reduction.element = r.element;
  if (!remote::locks(r.kind)) out.offset = r.target_offset;
  out.bytes = r.target_bytes;
  out.contiguous = r.target_layout == 0;
  if (out.contiguous) return out;
  const offpath_layout_t& layout = r.layouts[r.target_layout - 1];
  out.layout.size_bytes = layout.size_bytes;
  out.layout.extent_bytes = layout.extent_bytes;
  out.layout.ranges.reserve(layout.ranges_count);
  for (const offpath_range_t& range : std::span(layout.ranges, layout.ranges_count)) {
    out.layout.ranges.push_back({range.offset_bytes, range.bytes});
  }
  return out;
}

bool good_block(const offpath_block_t& block, uint64_t bytes, const offpath_remote_t& r) {
  if (block.bytes != bytes || block.layout > r.layouts_count || block.peer != 0 || block.tag != 0) return false;
  // A layout may begin at address 0: its offsets can be addresses.
  return block.address != nullptr || block.bytes == 0 || block.layout != 0;
}

bool is_empty(const offpath_block_t& block) {
  return block.peer == 0 && block.tag == 0 && block.address == nullptr && block.bytes == 0 && block.layout == 0;
}

bool good_blocks(const offpath_remote_t& r, const Wanted& wanted) {
  if (remote::sends(wanted) ? !good_block(r.send, remote::data_bytes(wanted), r)
                            : !remote::may_send(r.kind) && !is_empty(r.send)) {
    return false;
  }
  if (r.kind == OFFPATH_COMPARE_AND_SWAP && r.send.layout != 0) return false;
  return remote::fetches(r.kind) ? good_block(r.result, r.target_bytes, r) : is_empty(r.result);
}

bool good_enumerators(const offpath_remote_t& r) {
  if (!is_between(r.kind, OFFPATH_PUT, OFFPATH_UNLOCK)) return false;
  if (remote::combines(r.kind) && !is_between(r.op, OFFPATH_OP_NONE + 1, OFFPATH_OP_NO_OP)) return false;
  return !remote::accumulates(r.kind) || is_between(r.element, OFFPATH_ELEMENT_NONE + 1, OFFPATH_ELEMENT_F64_F64);
}

}  // namespace

offpath_status_t check_remote(const offpath_remote_t& r, uint32_t team_size, Wanted& wanted) {
  if (r.struct_bytes != sizeof(r) || !good_enumerators(r) || r.target >= team_size ||
      r.target_layout > r.layouts_count || (r.layouts == nullptr && r.layouts_count > 0) ||
      (r.flags & ~OFFPATH_REMOTE_FLUSHED) != 0) {
    return OFFPATH_ERR_ARGUMENT;
  }
  if (r.layouts_count > session::kSegmentBytes / sizeof(session::LayoutRecord)) return OFFPATH_ERR_NO_MEMORY;
  const Layouts layouts(r.layouts, r.layouts_count);
  if (layouts_bytes(layouts) > session::kSegmentBytes) return OFFPATH_ERR_NO_MEMORY;
  if (!std::all_of(layouts.begin(), layouts.end(), good_layout)) return OFFPATH_ERR_ARGUMENT;
  wanted = wanted_of(r);
  return check(wanted).ok() && good_blocks(r, wanted) ? OFFPATH_OK : OFFPATH_ERR_ARGUMENT;
}

void build_record(const offpath_remote_t& r, const Wanted& wanted, std::vector<uint8_t>& out) {
  const Layouts layouts(r.layouts, r.layouts_count);
  const bool sends = remote::sends(wanted);
  const bool comes_along = sends && r.send.layout == 0 && r.send.bytes <= OFFPATH_REMOTE_INLINE_BYTES;
  RemoteRecord record{};
  record.target = r.target;
  record.layouts_count = r.layouts_count;
  record.ranges_count = static_cast<uint32_t>(count_ranges(layouts));
  if (sends) record.send = block_record(r.send);
  record.result = block_record(r.result);
  const size_t before = sizeof(record) + layouts_bytes(layouts);
  out.resize(before);
  const auto* data = static_cast<const uint8_t*>(r.send.address);
  encode(wanted, comes_along ? std::span(data, r.send.bytes) : std::span<const uint8_t>(), out);
  record.wanted_bytes = static_cast<uint32_t>(out.size() - before);
  RecordWriter writer(out.data());
  writer.write(record);
  writer.write_layouts(layouts);
}

}  // namespace offpath::client
