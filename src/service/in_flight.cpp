// SPDX-License-Identifier: BSD-3-Clause
#include "service/in_flight.hpp"

#include "base/clock.hpp"

namespace offpath::service {

uint64_t InFlight::now_ns() { return base::clock_ns(CLOCK_MONOTONIC_COARSE); }

void InFlight::begin(uint32_t slot, uint64_t now_ns) {
  Entry& entry = entries_[slot];
  if (entry.number != 0) return;
  entry = {++posted_, now_ns};
  if (count_++ == 0) any_since_ns_ = now_ns;
}

void InFlight::end(uint32_t slot, uint64_t now_ns) {
  if (entries_[slot].number == 0) return;
  entries_[slot].number = 0;
  if (--count_ == 0) progress_ns_ += now_ns - any_since_ns_;
}

std::optional<uint32_t> InFlight::oldest() const {
  std::optional<uint32_t> found;
  for (uint32_t slot = 0; slot < entries_.size(); ++slot) {
    const uint64_t number = entries_[slot].number;
    if (number != 0 && (!found || number < entries_[*found].number)) found = slot;
  }
  return found;
}

}  // namespace offpath::service
