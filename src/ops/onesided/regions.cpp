// SPDX-License-Identifier: BSD-3-Clause
#include "ops/onesided/regions.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace offpath::ops::onesided {
namespace {

using Wide = __int128;  // holds what offsets, extents and lengths of 64 bits add up to

// The bytes [first, end) between which everything lies that is named, from the first element's address.
struct Reach {
  Wide first = 0;
  Wide end = 0;
  void include(Wide from, uint64_t bytes) {
    const bool empty = first == end;
    first = empty ? from : std::min(first, from);
    end = empty ? from + bytes : std::max(end, from + bytes);
  }
};

Reach reach_of(const Wanted& wanted) {
  Reach reach;
  if (wanted.bytes == 0) return reach;
  if (wanted.contiguous) {
    reach.include(0, wanted.bytes);
    return reach;
  }
  const engine::Layout& layout = wanted.layout;
  const uint64_t whole = wanted.bytes / layout.size_bytes;
  uint64_t left = wanted.bytes % layout.size_bytes;  // of an element that is not whole, the last one
  for (const memory::Range& range : layout.ranges) {
    if (whole > 0 && range.bytes > 0) {
      reach.include(range.offset, range.bytes);
      reach.include(Wide{layout.extent_bytes} * (whole - 1) + range.offset, range.bytes);
    }
    const uint64_t part = std::min(left, range.bytes);
    if (part > 0) reach.include(Wide{layout.extent_bytes} * whole + range.offset, part);
    left -= part;
  }
  return reach;
}

}  // namespace

void Region::let_go() {
  if (--users_ == 0 && released_) std::exchange(released_, nullptr)();
}

void Region::release(Released released) {
  if (users_ == 0) return released();
  released_ = std::move(released);
}

bool Regions::add(uint64_t base, uint64_t bytes) {
  if (bytes == 0 || base + bytes < base) return false;
  const auto after = by_base_.lower_bound(base);
  if (after != by_base_.end() && after->first - base < bytes) return false;
  if (after != by_base_.begin() && base - std::prev(after)->first < std::prev(after)->second->bytes()) return false;
  by_base_.emplace_hint(after, base, std::make_shared<Region>(base, bytes));
  return true;
}

bool Regions::remove(uint64_t base, Released released) {
  const auto found = by_base_.find(base);
  if (found == by_base_.end()) return false;
  const std::shared_ptr<Region> region = found->second;
  by_base_.erase(found);
  region->release(std::move(released));
  return true;
}

void Regions::remove_all(Released released) {
  const auto regions = std::exchange(by_base_, {});
  const auto left = std::make_shared<size_t>(regions.size() + 1);
  const auto one_less = [left, released = std::move(released)] {
    if (--*left == 0) released();
  };
  for (const auto& [base, region] : regions) region->release(one_less);
  one_less();
}

std::shared_ptr<Region> Regions::find(const Wanted& wanted, uint64_t origin, uint64_t& address) const {
  const Reach reach = reach_of(wanted);
  const Wide at = Wide{origin} + wanted.offset;
  const Wide first = at + reach.first, end = at + reach.end;
  if (first < 0 || end > UINT64_MAX) return nullptr;
  const auto after = by_base_.upper_bound(static_cast<uint64_t>(first));
  if (after == by_base_.begin()) return nullptr;
  const std::shared_ptr<Region>& region = std::prev(after)->second;
  if (end > Wide{region->base()} + region->bytes()) return nullptr;
  address = static_cast<uint64_t>(at);
  return region;
}

}  // namespace offpath::ops::onesided
