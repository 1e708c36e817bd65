// SPDX-License-Identifier: BSD-3-Clause
// Where regions come from: a stretch of the session's shared memory, whose pages come when payloads do, and go when a region
// that held some is given back. It is longer than what is given out at a time, so that there is a hole for each.
//
// Threads: one at a time.
#pragma once

#include "client/heap.hpp"

#include <offpath/offpath.h>

#include <cstddef>
#include <cstdint>

namespace offpath::mpi {

class Pool {
 public:
  // Gives out so many bytes at a time, or as the session has. It may be empty.
  void open(offpath_session_t* session, uint64_t bytes);
  // Frees it.
  void close();

  std::byte* memory() const { return memory_; }
  uint64_t length() const { return heap_.capacity(); }
  bool has(const std::byte* region) const { return memory_ <= region && region < memory_ + length(); }
  // It has given nothing out.
  bool is_whole() const { return heap_.empty(); }
  // Of what it gives out.
  uint64_t left() const { return left_; }
  // Whole pages. nullptr: there is no room.
  std::byte* take(uint64_t bytes);
  // `used`: so much of it, from its beginning, has held anything.
  void give_back(std::byte* region, uint64_t used);

 private:
  offpath_session_t* session_ = nullptr;
  std::byte* memory_ = nullptr;
  client::Heap heap_{0};
  uint64_t left_ = 0;
};

}  // namespace offpath::mpi
