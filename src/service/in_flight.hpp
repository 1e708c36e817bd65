// SPDX-License-Identifier: BSD-3-Clause
// A client's operations under way, by slot: how many, since when, which is the oldest, and for how long there was any.
// Pure. Costs two reads of a coarse clock per operation, always: whoever attaches later wants to know since when.
#pragma once

#include "session/layout.hpp"

#include <optional>
#include <vector>

namespace offpath::service {

class InFlight {
 public:
  // CLOCK_MONOTONIC, to within some ms, in ns: a few ns of time where the exact one takes some tens.
  static uint64_t now_ns();

  // A slot that is under way already, or not, stays so.
  void begin(uint32_t slot, uint64_t now_ns);
  void end(uint32_t slot, uint64_t now_ns);

  uint64_t posted() const { return posted_; }
  uint32_t count() const { return count_; }
  std::optional<uint32_t> oldest() const;  // looks at all slots
  uint64_t since_ns(uint32_t slot) const { return entries_[slot].since_ns; }
  uint64_t progress_ns(uint64_t now_ns) const { return progress_ns_ + (count_ > 0 ? now_ns - any_since_ns_ : 0); }

 private:
  struct Entry {
    uint64_t number = 0;  // in the order of beginning, from 1; 0: not under way
    uint64_t since_ns = 0;
  };
  std::vector<Entry> entries_ = std::vector<Entry>(session::kSlotCount);
  uint64_t posted_ = 0;
  uint32_t count_ = 0;
  uint64_t any_since_ns_ = 0;
  uint64_t progress_ns_ = 0;  // until there was none
};

}  // namespace offpath::service
