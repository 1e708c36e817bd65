// SPDX-License-Identifier: BSD-3-Clause
// Of which of a lane's operations this rank has told its program the end, as it says that to the others. They end in about
// their order, so that is a number, and bits for those behind it. What is told further ahead than the bits reach counts as told
// with all between the first and the last of such: never the other way, as what was told cannot be done again.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace offpath::mpi {

class Told {
 public:
  static constexpr uint64_t kBits = 1024;

  void note(uint64_t sequence) {
    if (sequence < through_) return;
    if (sequence < through_ + kBits) {
      bit(sequence) |= mask(sequence);
    } else {
      far_begin_ = far_end_ == 0 ? sequence : std::min(far_begin_, sequence);
      far_end_ = std::max(far_end_, sequence + 1);
    }
    for (; has(through_); ++through_) bit(through_) &= ~mask(through_);
  }
  // What either has.
  void add(const Told& other) {
    Told both;
    both.through_ = std::max(through_, other.through_);
    for (uint64_t sequence = both.through_; sequence < both.through_ + kBits; ++sequence) {
      if (has(sequence) || other.has(sequence)) both.bit(sequence) |= mask(sequence);
    }
    both.far_end_ = std::max(far_end_, other.far_end_);
    both.far_begin_ = far_end_ == 0 ? other.far_begin_ : far_begin_;
    if (far_end_ != 0 && other.far_end_ != 0) both.far_begin_ = std::min(far_begin_, other.far_begin_);
    *this = both;
  }
  bool has(uint64_t sequence) const {
    if (sequence < through_ || (far_begin_ <= sequence && sequence < far_end_)) return true;
    return sequence < through_ + kBits && (bits_[place(sequence)] & mask(sequence)) != 0;
  }

 private:
  static size_t place(uint64_t sequence) { return sequence % kBits / 64; }
  static uint64_t mask(uint64_t sequence) { return uint64_t{1} << sequence % 64; }
  uint64_t& bit(uint64_t sequence) { return bits_[place(sequence)]; }

  uint64_t through_ = 0;                     // all before it
  uint64_t far_begin_ = 0, far_end_ = 0;     // all of these, too
  std::array<uint64_t, kBits / 64> bits_{};  // of those from `through_` on, by sequence % kBits
};

}  // namespace offpath::mpi
