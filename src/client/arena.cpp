// SPDX-License-Identifier: BSD-3-Clause
#include "client/arena.hpp"

#include <algorithm>
#include <bit>

namespace offpath::client {

unsigned Arena::size_class(uint64_t bytes) {
  return bytes <= 64 ? 6 : static_cast<unsigned>(std::bit_width(bytes - 1));
}

bool Arena::could_hold(uint64_t bytes) const {
  const unsigned size = size_class(bytes);
  return size < freed_.size() && uint64_t{1} << size <= capacity_;
}

uint64_t Arena::allocate(uint64_t bytes) {
  if (!could_hold(bytes)) return 0;
  const unsigned size = size_class(bytes);
  if (!freed_[size].empty()) {
    const uint64_t offset = freed_[size].back();
    freed_[size].pop_back();
    return offset;
  }
  const uint64_t length = uint64_t{1} << size;
  const uint64_t offset = cut(length);
  return offset == 0 && merge() ? cut(length) : offset;
}

void Arena::release(uint64_t offset, uint64_t bytes) {
  if (offset == 0) return;
  freed_[size_class(bytes)].push_back(offset);
  mergeable_ = true;
}

uint64_t Arena::cut(uint64_t length) {
  for (Span& span : spans_) {
    if (span.bytes < length) continue;
    const uint64_t offset = span.offset;
    span.offset += length;
    span.bytes -= length;
    return offset;
  }
  return 0;
}

bool Arena::merge() {
  if (!mergeable_) return false;
  mergeable_ = false;
  for (unsigned size = 0; size < freed_.size(); ++size) {
    for (const uint64_t offset : freed_[size]) spans_.push_back({offset, uint64_t{1} << size});
    freed_[size].clear();
  }
  std::sort(spans_.begin(), spans_.end(), [](const Span& a, const Span& b) { return a.offset < b.offset; });
  std::vector<Span> merged;
  for (const Span& span : spans_) {
    if (span.bytes == 0) continue;
    if (!merged.empty() && merged.back().offset + merged.back().bytes == span.offset) {
      merged.back().bytes += span.bytes;
    } else {
      merged.push_back(span);
    }
  }
  spans_ = std::move(merged);
  return true;
}

}  // namespace offpath::client
