// SPDX-License-Identifier: BSD-3-Clause
#include "client/described.hpp"

#include "base/limits.hpp"
#include "client/enumerator.hpp"
#include "session/layout.hpp"

#include <algorithm>

namespace offpath::client {
namespace {

using base::Status;
using collective::Collective;
using memory::Block;
using remote::Wanted;

bool is_missing(const void* array, uint32_t count) { return array == nullptr && count > 0; }

// A layout may begin at address 0: its offsets can be addresses.
bool has_address(const offpath_block_t& block) {
  return block.address != nullptr || block.bytes == 0 || block.layout != 0;
}

Block block_of(const offpath_block_t& block) {
  return {block.peer, block.tag, reinterpret_cast<uint64_t>(block.address), block.bytes, block.layout};
}

std::vector<Block> blocks_of(const offpath_block_t* blocks, uint32_t count) {
  std::vector<Block> out;
  out.reserve(count);
  for (const offpath_block_t& block : std::span(blocks, count)) out.push_back(block_of(block));
  return out;
}

// More than any segment holds?
bool too_many(std::span<const offpath_layout_t> layouts) {
  if (layouts.size() > session::kSegmentBytes / sizeof(memory::LayoutRecord)) return true;
  uint64_t ranges = 0;
  for (const offpath_layout_t& layout : layouts) ranges += layout.ranges_count;
  return ranges > session::kSegmentBytes / sizeof(memory::Range);
}

// False: ranges are missing.
bool read_layouts(std::span<const offpath_layout_t> layouts, std::vector<memory::Layout>& out) {
  out.reserve(layouts.size());
  for (const offpath_layout_t& layout : layouts) {
    if (layout.ranges == nullptr) return false;
    memory::Layout& copy = out.emplace_back(memory::Layout{layout.size_bytes, layout.extent_bytes, {}});
    copy.ranges.reserve(layout.ranges_count);
    for (const offpath_range_t& range : std::span(layout.ranges, layout.ranges_count)) {
      copy.ranges.push_back({range.offset_bytes, range.bytes});
    }
  }
  return true;
}

// What the service asks of data that is only moved. Other values have no meaning there.
offpath_element_t numbers_in(offpath_element_t element) {
  return remote::is_number(element) ? element : OFFPATH_ELEMENT_NONE;
}

// ---- collectives ----------------------------------------------------------------------------------------------------

bool reduces(const offpath_collective_t& c) { return c.kind >= OFFPATH_REDUCE; }

bool good_enumerators(const offpath_collective_t& c) {
  return is_word(c.kind) && is_word(c.algorithm) && number_of(c.ends) <= OFFPATH_ENDS_BY_PAIRS &&
         (!reduces(c) || (is_word(c.op) && is_word(c.element)));
}

// What only the C API can say wrongly.
bool good_blocks(const offpath_collective_t& c) {
  const auto good = [&](const offpath_block_t& block) {
    return has_address(block) && (c.kind == OFFPATH_EXCHANGE || (block.peer == 0 && block.tag == 0));
  };
  const std::span send(c.send, c.send_count), recv(c.recv, c.recv_count);
  return std::all_of(send.begin(), send.end(), good) && std::all_of(recv.begin(), recv.end(), good);
}

// ---- one-sided ------------------------------------------------------------------------------------------------------

bool good_enumerators(const offpath_remote_t& r) {
  if (!is_word(r.kind)) return false;
  if ((r.signal != nullptr) != remote::signals(r.kind)) return false;
  if (remote::combines(r.kind) && !is_word(r.op)) return false;
  return !remote::accumulates(r.kind) || is_word(r.element);
}

// Precondition: good enumerators; the layout that it names is there.
Wanted wanted_of(const offpath_remote_t& r, const std::vector<memory::Layout>& layouts) {
  Wanted out;
  out.kind = r.kind;
  if (remote::combines(r.kind)) out.reduction.op = r.op;
  if (!remote::locks(r.kind)) {
    out.reduction.element = remote::accumulates(r.kind) ? r.element : numbers_in(r.element);
  }
  if (!remote::locks(r.kind)) out.offset = r.target_offset;
  out.bytes = r.target_bytes;
  out.contiguous = r.target_layout == 0;
  if (!out.contiguous) out.layout = layouts[r.target_layout - 1];
  return out;
}

bool good_block(const offpath_block_t& block, uint64_t bytes, const offpath_remote_t& r) {
  return block.bytes == bytes && block.layout <= r.layouts_count && block.peer == 0 && block.tag == 0 &&
         has_address(block);
}

bool is_empty(const offpath_block_t& block) { return block_of(block) == Block{}; }

bool good_blocks(const offpath_remote_t& r, const Wanted& wanted) {
  if (remote::sends(wanted) ? !good_block(r.send, remote::data_bytes(wanted), r)
                            : !remote::may_send(r.kind) && !is_empty(r.send)) {
    return false;
  }
  if (r.kind == OFFPATH_COMPARE_AND_SWAP && r.send.layout != 0) return false;
  return remote::fetches(r.kind) ? good_block(r.result, r.target_bytes, r) : is_empty(r.result);
}

// ---- own blocks -----------------------------------------------------------------------------------------------------

// By tag.
std::vector<const Block*> blocks_with(const std::vector<Block>& blocks, uint32_t peer) {
  std::vector<const Block*> out;
  for (const Block& block : blocks) {
    if (block.peer == peer) out.push_back(&block);
  }
  std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->tag < b->tag; });
  return out;
}

void add_own_block(OwnBlocks& own, const Block& send, const Block& recv) {
  if (send.bytes == 0) return;
  if (send.layout != 0 || recv.layout != 0) {
    own.contiguous = false;
  } else if (send.address != recv.address) {
    own.copies.push_back(
        {reinterpret_cast<const void*>(send.address), reinterpret_cast<void*>(recv.address), send.bytes});
  }
}

}  // namespace

offpath_status_t describe(const offpath_collective_t& c, uint32_t rank, uint32_t size, Collective& out) {
  if (c.struct_bytes != sizeof(c) || !good_enumerators(c) || is_missing(c.send, c.send_count) ||
      is_missing(c.recv, c.recv_count) || is_missing(c.layouts, c.layouts_count) ||
      (c.kind == OFFPATH_REDUCE_SCATTER && c.counts_bytes == nullptr)) {
    return OFFPATH_ERR_ARGUMENT;
  }
  const std::span layouts(c.layouts, c.layouts_count);
  const uint64_t blocks = uint64_t{c.send_count} + c.recv_count;
  if (blocks > session::kSegmentBytes / sizeof(Block) || too_many(layouts)) return OFFPATH_ERR_NO_MEMORY;
  out.kind = c.kind;
  out.algorithm = c.algorithm;
  out.root = c.root;
  out.reduction =
      reduces(c) ? kernels::Reduction{c.op, c.element} : kernels::Reduction{OFFPATH_OP_NONE, numbers_in(c.element)};
  if (!good_blocks(c) || !read_layouts(layouts, out.layouts)) return OFFPATH_ERR_ARGUMENT;
  out.send = blocks_of(c.send, c.send_count);
  out.recv = blocks_of(c.recv, c.recv_count);
  if (c.kind == OFFPATH_REDUCE_SCATTER) out.counts_bytes.assign(c.counts_bytes, c.counts_bytes + size);
  return check(out, rank, size).code();
}

offpath_status_t describe(const offpath_remote_t& r, uint32_t team_size, DescribedRemote& out) {
  if (r.struct_bytes != sizeof(r) || !good_enumerators(r) || r.target >= team_size ||
      r.target_layout > r.layouts_count || is_missing(r.layouts, r.layouts_count) ||
      (r.flags & ~OFFPATH_REMOTE_FLUSHED) != 0) {
    return OFFPATH_ERR_ARGUMENT;
  }
  const std::span layouts(r.layouts, r.layouts_count);
  if (too_many(layouts)) return OFFPATH_ERR_NO_MEMORY;
  if (!read_layouts(layouts, out.origin.layouts)) return OFFPATH_ERR_ARGUMENT;
  for (const memory::Layout& layout : out.origin.layouts) {
    if (!memory::check_layout(layout).ok()) return OFFPATH_ERR_ARGUMENT;
  }
  out.wanted = wanted_of(r, out.origin.layouts);
  if (!check(out.wanted).ok() || !good_blocks(r, out.wanted)) return OFFPATH_ERR_ARGUMENT;
  out.origin.target = r.target;
  if (remote::sends(out.wanted)) out.origin.send = block_of(r.send);
  out.origin.result = block_of(r.result);
  if (r.signal != nullptr) out.origin.result = {0, 0, reinterpret_cast<uint64_t>(r.signal), remote::kSignalBytes, 0};
  const bool comes_along = is_short(out.wanted) && remote::sends(out.wanted) && r.send.layout == 0 &&
                           r.send.bytes <= OFFPATH_REMOTE_INLINE_BYTES;
  if (comes_along) out.data = {static_cast<const uint8_t*>(r.send.address), r.send.bytes};
  return OFFPATH_OK;
}

offpath_status_t describe(const offpath_file_transfer_t& t, uint32_t file, files::Transfer& out) {
  if (t.struct_bytes != sizeof(t) || (t.flags & ~uint32_t{OFFPATH_FILE_LOCKED}) != 0 || t.reserved != 0 ||
      is_missing(t.layouts, t.layouts_count) || is_missing(t.after, t.after_count) ||
      t.after_count > OFFPATH_TASK_AFTER_MAX || t.layouts_count > files::kMaxLayouts ||
      !read_layouts({t.layouts, t.layouts_count}, out.layouts)) {
    return OFFPATH_ERR_ARGUMENT;
  }
  out.file = file;
  out.locked = t.flags != 0;
  out.memory = block_of(t.memory);
  out.offset = t.offset_bytes;
  out.skip = t.skip_bytes;
  out.layout = t.layout;
  out.after.assign(t.after_count, 0);
  return files::check(out).code();
}

OwnBlocks own_blocks(const Collective& collective, uint32_t rank) {
  OwnBlocks own;
  if (collective.kind == OFFPATH_ALLGATHER) {
    const Block &send = collective.send.front(), &recv = collective.recv[rank];
    const bool in_place = send.address == recv.address && send.layout == recv.layout && send.bytes == recv.bytes;
    if (!in_place) add_own_block(own, send, recv);
  } else if (collective.kind == OFFPATH_EXCHANGE) {
    const auto recv = blocks_with(collective.recv, rank);
    auto at = recv.begin();
    for (const Block* send : blocks_with(collective.send, rank)) {
      while (at != recv.end() && (*at)->tag < send->tag) ++at;
      if (at != recv.end() && (*at)->tag == send->tag) add_own_block(own, *send, **at);
    }
  }
  return own;
}

}  // namespace offpath::client
