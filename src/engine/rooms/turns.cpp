// SPDX-License-Identifier: BSD-3-Clause
#include "engine/rooms/turns.hpp"

#include <algorithm>
#include <utility>

namespace offpath::engine {

namespace {
constexpr uint64_t kLeastChunks = 2;  // one comes while the next is asked for
constexpr uint64_t kWholeBytes = 64;  // pieces are multiples of it, so that no number lies in two
constexpr uint64_t kGrowth = 1024;  // looks without a loss until the window is e times as wide: a loss may cost 200 ms
}  // namespace

Turns::Turns(uint64_t chunk_bytes)
    : chunk_bytes_(chunk_bytes), first_bytes_(std::max(kWholeBytes, chunk_bytes / 8 / kWholeBytes * kWholeBytes)) {}

uint64_t Turns::ask(uint64_t id, uint64_t bytes) {
  if (window_ == UINT64_MAX || bytes <= first_bytes_) return bytes;
  if (alone_ == 0 && asked_.empty()) {
    alone_ = id;
    return bytes;
  }
  asked_.emplace(id, Asked{bytes, first_bytes_});
  return first_bytes_;
}

void Turns::arrive(uint64_t id, uint64_t bytes, uint64_t total) {
  const auto found = asked_.find(id);
  if (found == asked_.end()) return;
  Asked& block = found->second;
  if (!block.begun) {
    block.begun = true;
    block.total = total;
    block.granted = std::min(block.granted, total);
    under_way_ += block.granted;
    if (block.granted < total) waiting_.push_back(id);
  }
  const uint64_t counted = std::min(bytes, block.granted - block.here);  // who sends more than he may is not counted
  block.here += counted;
  under_way_ -= counted;
}

void Turns::end(uint64_t id) {
  if (alone_ == id) alone_ = 0;
  const auto found = asked_.find(id);
  if (found == asked_.end()) return;
  if (found->second.begun) under_way_ -= found->second.granted - found->second.here;
  asked_.erase(found);
}

std::optional<Turns::Grant> Turns::next() {
  while (!waiting_.empty()) {
    const uint64_t id = waiting_.front();
    const auto found = asked_.find(id);
    if (found != asked_.end()) {
      Asked& block = found->second;
      const bool bounded = window_ != UINT64_MAX && (alone_ != 0 || asked_.size() > 1);
      const uint64_t rest = block.total - block.granted;
      const uint64_t piece = bounded ? std::min(rest, chunk_bytes_) : rest;
      if (bounded && under_way_ > 0 && under_way_ + piece > window_) return std::nullopt;
      block.granted += piece;
      under_way_ += piece;
      waiting_.pop_front();
      if (piece < rest) waiting_.push_back(id);
      return Grant{id, block.granted};
    }
    waiting_.pop_front();
  }
  return std::nullopt;
}

void Turns::look(size_t senders, bool lost) {
  if (senders < 2) return;
  const uint64_t most = look_bytes();
  if (lost && std::exchange(narrowed_, !narrowed_)) return;
  if (lost) {
    window_ = std::max(kLeastChunks * chunk_bytes_, std::min(window_, most) / 2);
    return;
  }
  narrowed_ = false;
  if (window_ != UINT64_MAX) {
    window_ += window_ / kGrowth + 1;
    if (window_ > most) window_ = UINT64_MAX;
  }
}

}  // namespace offpath::engine
