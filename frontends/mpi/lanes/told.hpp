// SPDX-License-Identifier: BSD-3-Clause
// Of which of a lane's operations this rank has told its program the end, as it says that to the others. They end in about
// their order, so that is a number and a few bits behind it. Told ahead of that by more than the bits hold, an operation counts
// as told with all before it: never the other way, as what was told can not be done again.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace offpath::mpi {

class Told {
 public:
  static constexpr uint64_t kBits = 1024;

  void note(uint64_t sequence) {
    end_ = std::max(end_, sequence + 1);
    if (sequence < through_ || sequence >= through_ + kBits) return;
    bit(sequence) |= mask(sequence);
    for (; through_ < end_ && (bit(through_) & mask(through_)) != 0; ++through_) bit(through_) &= ~mask(through_);
  }
  // What either has.
  void add(const Told& other) {
    Told both;
    both.through_ = std::max(through_, other.through_);
    for (uint64_t sequence = both.through_; sequence < both.through_ + kBits; ++sequence) {
      if (has(sequence) || other.has(sequence)) both.bit(sequence) |= mask(sequence);
    }
    both.end_ = std::max(end_, other.end_);
    *this = both;
  }
  bool has(uint64_t sequence) const {
    if (sequence < through_) return true;
    return sequence < through_ + kBits ? (bits_[place(sequence)] & mask(sequence)) != 0 : sequence < end_;
  }

 private:
  static size_t place(uint64_t sequence) { return sequence % kBits / 64; }
  static uint64_t mask(uint64_t sequence) { return uint64_t{1} << sequence % 64; }
  uint64_t& bit(uint64_t sequence) { return bits_[place(sequence)]; }

  uint64_t through_ = 0;                     // all before it
  uint64_t end_ = 0;                         // none from it on
  std::array<uint64_t, kBits / 64> bits_{};  // of those from `through_` on, by sequence % kBits
};

}  // namespace offpath::mpi
