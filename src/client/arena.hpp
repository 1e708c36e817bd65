// SPDX-License-Identifier: BSD-3-Clause
// Arena: hands out pieces of the session segment's arena. Only the client allocates; its book-keeping is private
// memory, so nobody else can damage it. Sizes are rounded up to powers of two; freed pieces are kept by size.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace offpath::client {

class Arena {
 public:
  Arena(uint64_t begin, uint64_t end) : next_(begin), end_(end) {}
  // Offset of a piece of at least `bytes`, 64-byte aligned; 0 when there is no room.
  uint64_t allocate(uint64_t bytes);
  void release(uint64_t offset, uint64_t bytes);

 private:
  static unsigned size_class(uint64_t bytes);

  uint64_t next_;
  uint64_t end_;
  std::array<std::vector<uint64_t>, 40> free_;
};

}  // namespace offpath::client
