// SPDX-License-Identifier: BSD-3-Clause
// Transfer: what one operation wants of a file: the client makes it from the C API's and writes its bytes into the segment, the
// service reads them, ops/files makes a graph from it. Pure.
//
// Client and service both look at all of it, with check(): the one to tell its caller, the other because the client may be broken
// or hostile.
#pragma once

#include "base/result.hpp"
#include "memory/layout.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace offpath::files {

inline constexpr uint32_t kMaxFiles = 1024;  // of one client: their numbers are less

inline constexpr uint32_t kMaxLayouts = 2;  // of a transfer: of the memory and of the file

// See offpath_file_transfer_t.
struct Transfer {
  uint32_t file = 0;     // as its client has numbered it
  memory::Block memory;  // peer and tag 0; its bytes are those of the transfer
  uint64_t offset = 0;   // in the file, of the first element
  uint64_t skip = 0;     // data bytes of the elements before the first
  bool locked = false;   // OFFPATH_FILE_LOCKED
  uint32_t layout = 0;   // in the file; 0: contiguous, k: layouts[k - 1]
  std::vector<memory::Layout> layouts;
  std::vector<uint32_t> after;  // slots, or how they have ended (tasks/record.hpp)
};

// What the service says of one that has ended, at the beginning of its record.
struct ResultRecord {
  uint64_t bytes;        // moved
  int32_t system_error;  // as errno has it; 0: none
  uint32_t reserved;
};
static_assert(sizeof(ResultRecord) == 16);

// A layout of a file ascends: its elements neither overlap nor go back. OFFPATH_ERR_ARGUMENT and why.
base::Status check(const Transfer& transfer);

// It names no byte of the file behind the first `file_bytes`; only then if its layout's last element lies within these, too. Precondition:
// check() passed.
bool ends_within(const Transfer& transfer, uint64_t file_bytes);

// So many of its bytes lie in a file of that length. Precondition: check() passed.
uint64_t bytes_within(const Transfer& transfer, uint64_t file_bytes);

// [ResultRecord][TransferRecord][layouts and their ranges][u32 x after]. `after_offset`: where the last part begins.
std::vector<uint8_t> encode(const Transfer& transfer, uint64_t* after_offset = nullptr);
// The first bytes of `record`, each read once. OFFPATH_ERR_ARGUMENT: cut short, or counts that do not fit together.
base::Result<Transfer> decode(std::span<const uint8_t> record);

}  // namespace offpath::files
