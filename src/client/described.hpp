// SPDX-License-Identifier: BSD-3-Clause
// From what callers of the C API describe to what client and service share (collective/, remote/, files/). Pure. Linear in the
// ranges, and in the blocks of an exchange when they are in the order of peers and tags.
#pragma once

#include "collective/collective.hpp"
#include "files/transfer.hpp"
#include "remote/record.hpp"

#include <offpath/offpath.h>

#include <cstdint>

namespace offpath::client {

// OFFPATH_ERR_ARGUMENT for what a caller can get wrong; OFFPATH_ERR_TRUNCATED where more is sent to the member itself
// than it takes; OFFPATH_ERR_NO_MEMORY when the description is longer than any segment: then its arrays were not looked at.
offpath_status_t describe(const offpath_collective_t& from, uint32_t rank, uint32_t size, collective::Collective& out);

// The origin's part has no body yet, which wants the window's id: `wanted`, with `data` behind it.
struct DescribedRemote {
  remote::Origin origin;
  remote::Wanted wanted;
  std::span<const uint8_t> data;  // of the caller; what goes along
};
offpath_status_t describe(const offpath_remote_t& from, uint32_t team_size, DescribedRemote& out);

// What it comes after is named when it is submitted.
offpath_status_t describe(const offpath_file_transfer_t& from, uint32_t file, files::Transfer& out);

// What a member sends to itself (exchange and allgather; nothing elsewhere).
struct OwnCopy {
  const void* source;
  void* target;
  size_t bytes;
};
struct OwnBlocks {
  bool contiguous = true;  // else `copies` is incomplete
  std::vector<OwnCopy> copies;
};
// Precondition: describe() has made it.
OwnBlocks own_blocks(const collective::Collective& collective, uint32_t rank);

}  // namespace offpath::client
