// SPDX-License-Identifier: BSD-3-Clause
#include "client/heap.hpp"

#include <iterator>

namespace offpath::client {
namespace {
constexpr uint64_t kPage = 4096;
}

std::optional<uint64_t> Heap::allocate(uint64_t bytes) {
  if (bytes == 0 || bytes > capacity_) return std::nullopt;
  const uint64_t length = (bytes + kPage - 1) / kPage * kPage;
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [offset, room] = *it;
    if (room < length) continue;
    free_.erase(it);
    if (room > length) free_[offset + length] = room - length;
    used_[offset] = length;
    return offset;
  }
  return std::nullopt;
}

void Heap::split(uint64_t offset, uint64_t second) {
  const auto found = used_.find(offset);
  if (found == used_.end() || second <= offset || second - offset >= found->second) return;
  used_[second] = found->second - (second - offset);
  found->second = second - offset;
}

uint64_t Heap::release(uint64_t offset) {
  const auto found = used_.find(offset);
  if (found == used_.end()) return 0;
  const uint64_t length = found->second;
  used_.erase(found);
  auto here = free_.emplace(offset, length).first;
  if (const auto next = std::next(here); next != free_.end() && here->first + here->second == next->first) {
    here->second += next->second;
    free_.erase(next);
  }
  if (here != free_.begin()) {
    const auto before = std::prev(here);
    if (before->first + before->second == here->first) {
      before->second += here->second;
      free_.erase(here);
    }
  }
  return length;
}

}  // namespace offpath::client
