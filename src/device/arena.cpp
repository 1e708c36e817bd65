// SPDX-License-Identifier: BSD-3-Clause
#include "device/arena.hpp"

#include <algorithm>

namespace offpath::device {

namespace {
constexpr uint64_t kPage = 4096;
constexpr uint64_t kWorthReturning = 1 << 20;
}  // namespace

Arena::Arena(uint64_t address, uint64_t bytes) : end_(address + bytes), keep_(bytes / 4) {
  bytes -= bytes % kAlignment;
  if (bytes > 0) add(address, bytes);
}

void Arena::add(uint64_t address, uint64_t bytes) {
  free_.emplace(address, bytes);
  by_size_.emplace(bytes, address);
}

void Arena::remove(std::map<uint64_t, uint64_t>::iterator span) {
  by_size_.erase({span->second, span->first});
  free_.erase(span);
}

std::optional<uint64_t> Arena::allocate(uint64_t bytes) {
  if (bytes > end_) return std::nullopt;
  bytes = std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  const auto best = by_size_.lower_bound({bytes, 0});
  if (best == by_size_.end()) return std::nullopt;
  const auto [length, address] = *best;
  remove(free_.find(address));
  if (length > bytes) add(address + bytes, length - bytes);
  blocks_.emplace(address, bytes);
  used_ += bytes;
  touched_ = std::max(touched_, used_);
  return address;
}

bool Arena::release(uint64_t address) {
  const auto block = blocks_.find(address);
  if (block == blocks_.end()) return false;
  uint64_t begin = address;
  uint64_t end = address + block->second;
  used_ -= block->second;
  blocks_.erase(block);
  const auto next = free_.lower_bound(address);
  if (next != free_.end() && next->first == end) end += next->second;
  if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == address) {
    begin = std::prev(next)->first;
    remove(std::prev(next));
  }
  if (next != free_.end() && next->first < end) remove(next);
  add(begin, end - begin);
  return true;
}

uint64_t Arena::largest_free() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

std::vector<Span> Arena::take_excess() {
  std::vector<Span> excess;
  if (touched_ - used_ <= keep_) return excess;
  touched_ = used_;
  for (auto span = by_size_.lower_bound({kWorthReturning, 0}); span != by_size_.end(); ++span) {
    const uint64_t begin = (span->second + kPage - 1) / kPage * kPage;
    const uint64_t end = (span->second + span->first) / kPage * kPage;
    if (end > begin) excess.push_back({begin, end - begin});
  }
  return excess;
}

}  // namespace offpath::device
