// SPDX-License-Identifier: BSD-3-Clause
#include "client/collective_record.hpp"

#include "client/enumerator.hpp"
#include "client/record_writer.hpp"

#include <algorithm>
#include <span>

namespace offpath::client {
namespace {

using session::BlockRecord;
using session::CollectiveRecord;

Layouts layouts_of(const offpath_collective_t& c) { return {c.layouts, c.layouts_count}; }
uint32_t counts_count(const offpath_collective_t& c, uint32_t size) {
  return c.kind == OFFPATH_REDUCE_SCATTER ? size : 0;
}

void write_blocks(RecordWriter& writer, const offpath_block_t* blocks, uint32_t count) {
  for (const offpath_block_t& block : std::span(blocks, count)) writer.write(block_record(block));
}

using Blocks = std::vector<const offpath_block_t*>;

// By tag.
Blocks blocks_of(const offpath_block_t* blocks, uint32_t count, uint32_t peer) {
  Blocks out;
  for (const offpath_block_t& block : std::span(blocks, count)) {
    if (block.peer == peer) out.push_back(&block);
  }
  std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->tag < b->tag; });
  return out;
}

void add_own_block(OwnBlocks& own, const offpath_block_t& send, const offpath_block_t* recv) {
  if (send.bytes == 0) return;
  if (recv == nullptr || send.bytes > recv->bytes) {
    own.truncated = true;
  } else if (send.layout != 0 || recv->layout != 0) {
    own.contiguous = false;
  } else if (send.address != recv->address) {
    own.copies.push_back({send.address, const_cast<void*>(recv->address), send.bytes});
  }
}

}  // namespace

uint64_t record_bytes(const offpath_collective_t& c, uint32_t size) {
  const uint64_t bytes = sizeof(CollectiveRecord) + (uint64_t{c.send_count} + c.recv_count) * sizeof(BlockRecord) +
                         uint64_t{counts_count(c, size)} * sizeof(uint64_t) +
                         uint64_t{c.layouts_count} * sizeof(session::LayoutRecord) + uint64_t{size} * sizeof(uint32_t);
  if (bytes > session::kSegmentBytes) return bytes;
  return bytes + count_ranges(layouts_of(c)) * sizeof(session::RangeRecord);
}

std::vector<uint8_t> build_record(const offpath_collective_t& c, uint32_t size) {
  std::vector<uint8_t> out(record_bytes(c, size));
  RecordWriter writer(out.data());
  writer.write(CollectiveRecord{static_cast<uint32_t>(c.kind), static_cast<uint32_t>(c.algorithm), c.root,
                                number_of(c.op), number_of(c.element), c.send_count, c.recv_count,
                                counts_count(c, size), c.layouts_count,
                                static_cast<uint32_t>(count_ranges(layouts_of(c)))});
  write_blocks(writer, c.send, c.send_count);
  write_blocks(writer, c.recv, c.recv_count);
  for (const uint64_t bytes : std::span(c.counts_bytes, counts_count(c, size))) writer.write(bytes);
  writer.write_layouts(layouts_of(c));
  return out;
}

OwnBlocks own_blocks(const offpath_collective_t& c, uint32_t rank) {
  OwnBlocks own;
  if (c.kind == OFFPATH_ALLGATHER) {
    const bool in_place = c.send->address == c.recv[rank].address && c.send->layout == c.recv[rank].layout &&
                          c.send->bytes == c.recv[rank].bytes;
    if (!in_place) add_own_block(own, *c.send, &c.recv[rank]);
  } else if (c.kind == OFFPATH_EXCHANGE) {
    const Blocks recv = blocks_of(c.recv, c.recv_count, rank);
    auto at = recv.begin();
    for (const offpath_block_t* send : blocks_of(c.send, c.send_count, rank)) {
      while (at != recv.end() && (*at)->tag < send->tag) ++at;
      add_own_block(own, *send, at != recv.end() && (*at)->tag == send->tag ? *at : nullptr);
    }
  }
  return own;
}

}  // namespace offpath::client
