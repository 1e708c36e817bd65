// SPDX-License-Identifier: BSD-3-Clause
// What one sender was granted here: regions with numbers from 1, of which it uses the newest that it has heard of. It says where
// it has left the one before. When all that lies up to there was taken out, nothing comes there any more. Pure.
#pragma once

#include "mpi/messages/ring.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace offpath::mpi {

class Granted {
 public:
  struct Region {
    std::byte* memory;
    uint64_t bytes;
    RingReleaser released = {};
    uint64_t used = 0;                  // so much of it, from its beginning, has held payloads
    std::optional<uint64_t> left = {};  // by its sender: the position
    bool stays = false;                 // something may still be written there
  };

  // What each of so many senders is granted before it asks, of all that can be: half of that is for them, and a quarter for one at
  // most. 0: they are too many for two of the shortest messages, as they go both ways around a ring of two.
  static constexpr uint64_t least_early_bytes(uint64_t shortest) { return 2 * ring_bytes(shortest); }
  static constexpr uint64_t early_bytes(uint64_t all, uint64_t senders, uint64_t shortest) {
    const uint64_t bytes = std::min(all / 2 / std::max<uint64_t>(senders, 1), all / 4);
    return bytes < least_early_bytes(shortest) ? 0 : bytes;
  }

  // What whoever wishes can be granted, so that room for one small region is left, as whole pages.
  static constexpr uint64_t free_bytes(uint64_t left, uint64_t small) {
    constexpr uint64_t kPage = 4096;
    return left - std::min(left, (small + kPage - 1) / kPage * kPage);
  }

  uint64_t next() const { return newest_ + 1; }
  void add(std::byte* memory, uint64_t bytes) {
    regions_.emplace(newest_ + 1, Region{memory, bytes});
    ++newest_;
  }
  // The newest one, of which its sender was not told.
  void take_back() { regions_.erase(newest_--); }
  // nullptr: there is none, or nothing can come there any more.
  Region* find(uint64_t number) {
    const auto found = regions_.find(number);
    return found == regions_.end() ? nullptr : &found->second;
  }
  bool is_over(uint64_t number) { return number > 0 && number <= newest_ && find(number) == nullptr; }
  // Of the window that is used now; nullptr: none was granted.
  Region* newest() { return newest_ > past_ ? find(newest_) : nullptr; }
  // The window is another one now. What lies in regions stays there until it is taken out.
  void leave_window() { past_ = newest_; }
  // Its sender has left that window, too. Nothing comes to a region that it has not heard of.
  void note_past(const Departure& there) {
    for (auto& [number, region] : regions_) {
      if (number > past_ || region.left) continue;
      region.left = number == there.region ? there.position : number + 1 == there.region ? there.before : 0;
    }
  }
  // Whether its sender is to be told what was taken out of that one.
  bool is_used(uint64_t number) {
    if (number <= past_) return false;
    return number == newest_ || (number + 1 == newest_ && newest()->used == 0);
  }

  // `word`: as RingWord, or 0. It is of the one before the newest, as before that is said nobody gets another.
  void note_left(uint64_t word) {
    Region* const region = newest_ > past_ + 1 ? find(newest_ - 1) : nullptr;
    if (region == nullptr || !RingWord::is_of(word, newest_ - 1)) return;
    if (!region->left) region->left = RingWord::position_of(word, region->released.taken());
  }
  // The sender has heard of the newest one.
  bool is_heard() const {
    return std::all_of(regions_.begin(), regions_.end(), [this](const auto& one) {
      return one.first <= past_ || one.first == newest_ || one.second.left.has_value();
    });
  }
  // One in which nothing lies, and nothing will. It is no longer known. To what was of a window before nobody is granted anything
  // again, so there a late service may write.
  std::optional<Region> take_over() {
    for (auto one = regions_.begin(); one != regions_.end(); ++one) {
      const Region& region = one->second;
      if ((region.stays && one->first > past_) || region.left != region.released.taken()) continue;
      const Region over = region;
      regions_.erase(one);
      return over;
    }
    return std::nullopt;
  }

 private:
  std::map<uint64_t, Region> regions_;
  uint64_t newest_ = 0;  // number
  uint64_t past_ = 0;    // so many are of windows before
};

}  // namespace offpath::mpi
