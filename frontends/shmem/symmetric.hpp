// SPDX-License-Identifier: BSD-3-Clause
// Symmetric memory: the ranges of this process that exist alike at every PE, and the window over each.
#pragma once

#include <offpath/offpath.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace offpath::shmem {

struct Range {
  std::byte* begin = nullptr;
  uint64_t bytes = 0;
};

// The mapping that holds the symmetric heap, given any address in it; empty if the system does not say.
Range heap_range(const void* inside);
// The program's .data and .bss, where its global and static objects are.
Range data_range();

// A symmetric range. At every PE it has the same length, so an object has the same offset; addresses may differ
// (address space layout randomization).
class Segment {
 public:
  // Opens this PE's part. mapped: per PE where this process itself sees that PE's part, null where it does not.
  offpath_status_t open(offpath_team_t* team, uint64_t id, const Range& own, std::vector<std::byte*> mapped,
                        offpath_error_t* error);
  void close();

  // Whether [address, address + bytes) lies in it.
  bool holds(const void* address, uint64_t bytes) const {
    const uint64_t offset = offset_of(address);
    return offset < own_.bytes && bytes <= own_.bytes - offset;
  }
  uint64_t offset_of(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(own_.begin);
  }
  // Where loads and stores of this process reach the same object of `pe`; null if they do not.
  std::byte* mapped(const void* address, int pe) const {
    std::byte* const base = mapped_[static_cast<size_t>(pe)];
    return base == nullptr ? nullptr : base + offset_of(address);
  }
  offpath_window_t* window() const { return window_; }

 private:
  Range own_;
  offpath_window_t* window_ = nullptr;
  std::vector<std::byte*> mapped_;
};

}  // namespace offpath::shmem
