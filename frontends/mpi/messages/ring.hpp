// SPDX-License-Identifier: BSD-3-Clause
// The ring of one sender in one receiver's staging memory, as each of the two keeps it. Positions count all bytes that
// were ever allocated; a payload lies in one piece, with its signal behind it. An empty ring begins anew, so as much of it is
// touched as is under way at a time. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

namespace offpath::mpi {

inline constexpr uint64_t kRingUnit = 64;
inline constexpr uint64_t kSignalBytes = 8;

// What a payload of that length takes of a ring, unless the ring's end is in the way.
constexpr uint64_t ring_bytes(uint64_t payload) {
  return (payload + kSignalBytes + kRingUnit - 1) / kRingUnit * kRingUnit;
}

// Where the ring of a region is, in 8 bytes: of its number and the position what is left by a division, as only the newest
// ones are spoken of. Never 0, which stands for no word.
class RingWord {
 public:
  static constexpr unsigned kPositionBits = 48;
  static constexpr uint64_t kPositions = uint64_t{1} << kPositionBits;
  static constexpr uint64_t of(uint64_t region, uint64_t position) {
    return number_of(region) << kPositionBits | position % kPositions;
  }
  static constexpr bool is_of(uint64_t word, uint64_t region) { return word >> kPositionBits == number_of(region); }
  // The first one from `least` on that it can mean.
  static constexpr uint64_t position_of(uint64_t word, uint64_t least) { return least + (word - least) % kPositions; }

 private:
  static constexpr uint64_t number_of(uint64_t region) { return 1 + region % (UINT64_MAX >> kPositionBits); }
};

// The sender's.
class RingAllocator {
 public:
  explicit RingAllocator(uint64_t bytes = 0) : bytes_(bytes / kRingUnit * kRingUnit) {}
  uint64_t bytes() const { return bytes_; }
  // Up to there it is allocated.
  uint64_t head() const { return head_; }
  // Nothing before that is under way.
  uint64_t tail() const { return head_ - std::min(head_, bytes_); }

  struct Stretch {
    uint64_t begin, end;  // positions, with what is left out before the payload
    uint64_t offset;      // of the payload in the ring; the signal behind it is aligned
  };
  // Nothing: no room now. `taken`: up to there the receiver has taken everything out.
  std::optional<Stretch> allocate(uint64_t payload, uint64_t taken) {
    const uint64_t needed = ring_bytes(payload);
    if (payload > bytes_ || needed > bytes_ || taken > head_) return std::nullopt;
    if (taken == head_) origin_ = head_;
    const uint64_t skipped = skip(needed);
    if (head_ + skipped + needed - taken > bytes_) return std::nullopt;
    const uint64_t begin = head_;
    head_ += skipped + needed;
    return Stretch{begin, head_, (begin + skipped - origin_) % bytes_ + needed - kSignalBytes - payload};
  }
  // How long the ring should be where there was no room: for what is under way, and this.
  uint64_t wanted(uint64_t payload, uint64_t taken) const {
    const uint64_t needed = ring_bytes(payload);
    return taken > head_ || needed > bytes_ ? needed : head_ - taken + skip(needed) + needed;
  }
  // The last one was not used.
  void undo(const Stretch& last) { head_ = last.begin; }

 private:
  // A payload that does not fit before the ring's end lies at its beginning.
  uint64_t skip(uint64_t needed) const {
    const uint64_t left = bytes_ - (head_ - origin_) % bytes_;
    return needed > left ? left : 0;
  }

  uint64_t bytes_;
  uint64_t head_ = 0;
  uint64_t origin_ = 0;  // the position of the ring's beginning, or of a turn later
};

// What a sender says when it leaves a window: the last region that it has used, how far, and how far the one before that.
struct Departure {
  uint64_t region = 0;
  uint64_t position = 0;
  uint64_t before = 0;
};

// What a sender says when it goes on to another region than it has `had`: where it has left the one before that. Of one that it
// never heard of it has used nothing.
constexpr uint64_t left_position(uint64_t next, uint64_t had, const RingAllocator& ring) {
  return next - 1 == had ? ring.head() : 0;
}
constexpr uint64_t left_word(uint64_t next, uint64_t had, const RingAllocator& ring) {
  return RingWord::of(next - 1, left_position(next, had, ring));
}

// The receiver's: payloads are taken out in any order.
class RingReleaser {
 public:
  // Returns whether taken() has changed.
  bool release(uint64_t begin, uint64_t end) {
    released_[begin] = end;
    const uint64_t before = taken_;
    for (auto next = released_.find(taken_); next != released_.end(); next = released_.find(taken_)) {
      taken_ = next->second;
      released_.erase(next);
    }
    return taken_ != before;
  }
  uint64_t taken() const { return taken_; }
  bool was_released(uint64_t begin) const { return begin < taken_ || released_.contains(begin); }

 private:
  uint64_t taken_ = 0;
  std::map<uint64_t, uint64_t> released_;  // behind a stretch that was not
};

}  // namespace offpath::mpi
