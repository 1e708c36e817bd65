// SPDX-License-Identifier: BSD-3-Clause
// From an offpath_collective_t that check_collective() accepted to what goes into the session segment, and to what the
// client does itself. Pure.
#pragma once

#include <offpath/offpath.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace offpath::client {

// Length of the CollectiveRecord with all that follows it, and of the member's counters (Slot::open) behind that. Only
// a lower bound, and the layouts were not looked at, where that is more than a segment.
uint64_t record_bytes(const offpath_collective_t& collective, uint32_t size);

// The CollectiveRecord with all that follows it, and counters for `size` members, all zero.
std::vector<uint8_t> build_record(const offpath_collective_t& collective, uint32_t size);

struct OwnCopy {
  const void* source;
  void* target;
  size_t bytes;
};

// What a member sends to itself (exchange and allgather; nothing elsewhere).
struct OwnBlocks {
  bool truncated = false;  // more is sent than received
  bool contiguous = true;  // else `copies` is incomplete
  std::vector<OwnCopy> copies;
};
OwnBlocks own_blocks(const offpath_collective_t& collective, uint32_t rank);

}  // namespace offpath::client
