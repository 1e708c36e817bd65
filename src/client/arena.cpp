// SPDX-License-Identifier: BSD-3-Clause
#include "client/arena.hpp"

#include <bit>

namespace offpath::client {

unsigned Arena::size_class(uint64_t bytes) {
  return bytes <= 64 ? 6 : static_cast<unsigned>(std::bit_width(bytes - 1));
}

uint64_t Arena::allocate(uint64_t bytes) {
  const unsigned size = size_class(bytes);
  if (size >= free_.size()) return 0;
  if (!free_[size].empty()) {
    const uint64_t offset = free_[size].back();
    free_[size].pop_back();
    return offset;
  }
  const uint64_t length = uint64_t{1} << size;
  if (length > end_ - next_) return 0;
  const uint64_t offset = next_;
  next_ += length;
  return offset;
}

void Arena::release(uint64_t offset, uint64_t bytes) {
  if (offset != 0) free_[size_class(bytes)].push_back(offset);
}

}  // namespace offpath::client
