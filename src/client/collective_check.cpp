// SPDX-License-Identifier: BSD-3-Clause
#include "client/collective_check.hpp"

#include "client/collective_record.hpp"
#include "client/enumerator.hpp"
#include "client/layout_check.hpp"
#include "session/layout.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace offpath::client {
namespace {

constexpr uint32_t kEverybody = UINT32_MAX;  // as many blocks as the team has members
constexpr uint32_t kAny = UINT32_MAX - 1;

struct Kind {
  const char* name;
  bool rooted;
  bool reduces;
  uint32_t send_count, recv_count;            // of a member
  uint32_t root_send_count, root_recv_count;  // of the root; 0 where there is none
};

// By offpath_collective_kind_t.
constexpr Kind kKinds[] = {
    {},
    {"exchange", false, false, kAny, kAny, 0, 0},
    {"barrier", false, false, 0, 0, 0, 0},
    {"bcast", true, false, 0, 1, 1, 0},
    {"allgather", false, false, 1, kEverybody, 0, 0},
    {"reduce", true, true, 1, 0, 1, 1},
    {"allreduce", false, true, 1, 1, 0, 0},
    {"reduce_scatter", false, true, 1, 1, 0, 0},
    {"scan", false, true, 1, 1, 0, 0},
    {"exscan", false, true, 1, 1, 0, 0},
};

bool good_count(uint32_t count, uint32_t wanted, uint32_t size) {
  return wanted == kAny || count == (wanted == kEverybody ? size : wanted);
}

bool good_block(const offpath_block_t& block, const offpath_collective_t& c, uint32_t size) {
  if (too_long(block.bytes) || block.layout > c.layouts_count) return false;
  // A layout may begin at address 0: its offsets can be addresses.
  if (block.address == nullptr && block.bytes > 0 && block.layout == 0) return false;
  return c.kind == OFFPATH_EXCHANGE ? block.peer < size : block.peer == 0 && block.tag == 0;
}

// Nothing else tells two blocks for one member apart. Linear when the blocks are in order already.
bool distinct(std::span<const offpath_block_t> blocks) {
  const auto key = [](const offpath_block_t& block) { return uint64_t{block.peer} << 32 | block.tag; };
  const auto not_before = [&](const auto& a, const auto& b) { return key(a) >= key(b); };
  if (std::adjacent_find(blocks.begin(), blocks.end(), not_before) == blocks.end()) return true;
  std::vector<uint64_t> keys(blocks.size());
  std::transform(blocks.begin(), blocks.end(), keys.begin(), key);
  std::sort(keys.begin(), keys.end());
  return std::adjacent_find(keys.begin(), keys.end()) == keys.end();
}

bool good_counts(const offpath_collective_t& c, uint32_t rank, uint32_t size) {
  if (c.counts_bytes == nullptr) return false;
  uint64_t sum = 0;
  for (const uint64_t bytes : std::span(c.counts_bytes, size)) {
    if (too_long(bytes) || too_long(sum += bytes)) return false;
  }
  return c.send->bytes == sum && c.recv->bytes == c.counts_bytes[rank];
}

bool good_reduction(const offpath_collective_t& c, uint32_t rank, uint32_t size) {
  if (!is_between(c.op, OFFPATH_OP_NONE + 1, OFFPATH_OP_MAXLOC)) return false;
  if (!is_between(c.element, OFFPATH_ELEMENT_NONE + 1, OFFPATH_ELEMENT_F64_F64)) return false;
  if (c.send->layout != 0 || (c.recv_count > 0 && c.recv->layout != 0)) return false;
  if (c.kind == OFFPATH_REDUCE_SCATTER) return good_counts(c, rank, size);
  return c.recv_count == 0 || c.recv->bytes == c.send->bytes;
}

bool good(const offpath_collective_t& c, uint32_t rank, uint32_t size) {
  const std::span send(c.send, c.send_count), recv(c.recv, c.recv_count);
  const auto good_one = [&](const offpath_block_t& block) { return good_block(block, c, size); };
  return std::all_of(send.begin(), send.end(), good_one) && std::all_of(recv.begin(), recv.end(), good_one) &&
         std::all_of(c.layouts, c.layouts + c.layouts_count, good_layout) &&
         (c.kind != OFFPATH_EXCHANGE || (distinct(send) && distinct(recv))) &&
         (!kKinds[c.kind].reduces || good_reduction(c, rank, size)) &&
         (c.kind != OFFPATH_ALLGATHER || recv[rank].bytes <= send[0].bytes);  // less: truncated, see own_blocks()
}

}  // namespace

offpath_status_t check_collective(const offpath_collective_t& c, uint32_t rank, uint32_t size) {
  if (c.struct_bytes != sizeof(c) || !is_between(c.kind, OFFPATH_EXCHANGE, OFFPATH_EXSCAN) ||
      !is_between(c.algorithm, OFFPATH_ALGORITHM_DEFAULT, OFFPATH_ALGORITHM_DISSEMINATION)) {
    return OFFPATH_ERR_ARGUMENT;
  }
  const Kind& kind = kKinds[c.kind];
  if (kind.rooted && c.root >= size) return OFFPATH_ERR_ARGUMENT;
  const bool is_root = kind.rooted && c.root == rank;
  if (!good_count(c.send_count, is_root ? kind.root_send_count : kind.send_count, size) ||
      !good_count(c.recv_count, is_root ? kind.root_recv_count : kind.recv_count, size) ||
      (c.send == nullptr && c.send_count > 0) || (c.recv == nullptr && c.recv_count > 0) ||
      (c.layouts == nullptr && c.layouts_count > 0)) {
    return OFFPATH_ERR_ARGUMENT;
  }
  if (record_bytes(c, size) > session::kSegmentBytes) return OFFPATH_ERR_NO_MEMORY;
  return good(c, rank, size) ? OFFPATH_OK : OFFPATH_ERR_ARGUMENT;
}

const char* kind_name(offpath_collective_kind_t kind) { return kKinds[kind].name; }

}  // namespace offpath::client
