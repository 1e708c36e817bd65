// SPDX-License-Identifier: BSD-3-Clause
#include "client/remote_record.hpp"

#include "client/enumerator.hpp"
#include "client/layout_check.hpp"
#include "client/record_writer.hpp"

#include <algorithm>

namespace offpath::client {
namespace {

using session::RemoteRecord;

struct Kind {
  const char* name;
  bool sends;
  bool fetches;
  bool combines;  // with an operator
  bool has_element;
};

// By offpath_remote_kind_t.
constexpr Kind kKinds[] = {
    {},
    {"put", true, false, false, false},
    {"get", false, true, false, false},
    {"accumulate", true, false, true, true},
    {"get_accumulate", true, true, true, true},
    {"compare_and_swap", true, true, false, true},
    {"shared lock", false, false, false, false},
    {"exclusive lock", false, false, false, false},
    {"unlock", false, false, false, false},
};

const Kind& kind_of(const offpath_remote_t& remote) { return kKinds[remote.kind]; }

bool sends(const offpath_remote_t& r) { return kind_of(r).sends && !(kind_of(r).combines && r.op == OFFPATH_OP_NO_OP); }

bool is_inline(const offpath_remote_t& r) {
  return sends(r) && r.send.layout == 0 && r.send.bytes <= OFFPATH_REMOTE_INLINE_BYTES;
}

bool good_block(const offpath_block_t& block, uint64_t bytes, const offpath_remote_t& r) {
  if (block.bytes != bytes || block.layout > r.layouts_count || block.peer != 0 || block.tag != 0) return false;
  // A layout may begin at address 0: its offsets can be addresses.
  return block.address != nullptr || block.bytes == 0 || block.layout != 0;
}

bool is_empty(const offpath_block_t& block) {
  return block.peer == 0 && block.tag == 0 && block.address == nullptr && block.bytes == 0 && block.layout == 0;
}

bool good_blocks(const offpath_remote_t& r) {
  const bool swaps = r.kind == OFFPATH_COMPARE_AND_SWAP;
  if (sends(r) ? !good_block(r.send, swaps ? 2 * r.target_bytes : r.target_bytes, r)
               : !kind_of(r).sends && !is_empty(r.send)) {
    return false;
  }
  if (swaps && r.send.layout != 0) return false;
  return kind_of(r).fetches ? good_block(r.result, r.target_bytes, r) : is_empty(r.result);
}

bool good_kind(const offpath_remote_t& r) {
  const Kind& kind = kind_of(r);
  const bool moves = kind.sends || kind.fetches;
  if (!moves) return r.target_bytes == 0 && r.target_layout == 0;
  if (kind.combines && !is_between(r.op, OFFPATH_OP_NONE + 1, OFFPATH_OP_NO_OP)) return false;
  if (kind.has_element && !is_between(r.element, OFFPATH_ELEMENT_NONE + 1, OFFPATH_ELEMENT_F64_F64)) return false;
  return true;
}

}  // namespace

offpath_status_t check_remote(const offpath_remote_t& r, uint32_t team_size) {
  if (r.struct_bytes != sizeof(r) || !is_between(r.kind, OFFPATH_PUT, OFFPATH_UNLOCK) || r.target >= team_size ||
      too_long(r.target_bytes) || r.target_layout > r.layouts_count || (r.layouts == nullptr && r.layouts_count > 0) ||
      (r.flags & ~OFFPATH_REMOTE_FLUSHED) != 0 || !good_kind(r) || !good_blocks(r)) {
    return OFFPATH_ERR_ARGUMENT;
  }
  if (r.layouts_count > session::kSegmentBytes / sizeof(session::LayoutRecord)) return OFFPATH_ERR_NO_MEMORY;
  const Layouts layouts(r.layouts, r.layouts_count);
  if (layouts_bytes(layouts) > session::kSegmentBytes) return OFFPATH_ERR_NO_MEMORY;
  if (r.target_layout != 0 && layouts[r.target_layout - 1].ranges_count > OFFPATH_REMOTE_RANGES_MAX) {
    return OFFPATH_ERR_ARGUMENT;
  }
  return std::all_of(layouts.begin(), layouts.end(), good_layout) ? OFFPATH_OK : OFFPATH_ERR_ARGUMENT;
}

void build_record(const offpath_remote_t& r, std::vector<uint8_t>& out) {
  const Kind& kind = kind_of(r);
  const Layouts layouts(r.layouts, r.layouts_count);
  const auto inline_bytes = static_cast<uint32_t>(is_inline(r) ? r.send.bytes : 0);
  RemoteRecord record{};
  const bool moves = kind.sends || kind.fetches;
  record.target_offset = moves ? r.target_offset : 0;
  record.target_bytes = r.target_bytes;
  record.kind = static_cast<uint32_t>(r.kind);
  record.target = r.target;
  record.op = kind.combines ? static_cast<uint32_t>(r.op) : 0;
  record.element = kind.has_element ? static_cast<uint32_t>(r.element) : 0;
  record.target_layout = r.target_layout;
  record.layouts_count = r.layouts_count;
  record.ranges_count = static_cast<uint32_t>(count_ranges(layouts));
  record.inline_bytes = inline_bytes;
  if (sends(r)) record.send = block_record(r.send);
  record.result = block_record(r.result);
  out.resize(sizeof(record) + layouts_bytes(layouts) + inline_bytes);
  RecordWriter writer(out.data());
  writer.write(record);
  writer.write_layouts(layouts);
  writer.write_bytes(r.send.address, inline_bytes);
}

const char* kind_name(offpath_remote_kind_t kind) { return kKinds[kind].name; }

}  // namespace offpath::client
