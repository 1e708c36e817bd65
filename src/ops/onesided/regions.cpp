// SPDX-License-Identifier: BSD-3-Clause
#include "ops/onesided/regions.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace offpath::ops::onesided {
namespace {

using Wide = __int128;  // holds what offsets, extents and lengths of 64 bits add up to
constexpr Wide kFarthest = Wide{1} << 126;

// The same stretch of several elements: `count` of `bytes`, each `step` behind the one before.
struct Stretches {
  Wide first, step;
  uint64_t bytes, count;

  Wide last() const { return first + step * (count - 1); }
  Wide low() const { return std::min(first, last()); }
  Wide high() const { return std::max(first, last()) + bytes; }
  // Whether one of them has a byte in [from, to).
  bool touch(Wide from, Wide to) const {
    const Wide distance = step < 0 ? -step : step;
    const Wide before = from - bytes - low();  // the farthest that a stretch can begin and still end before `from`
    const Wide next = before < 0 ? 0 : distance == 0 ? Wide{count} : before / distance + 1;
    return from < to && next < count && low() + distance * next < to;
  }
};

// All that is named, with the first element at `at`; there is something.
void for_each_stretch(const Wanted& wanted, Wide at, auto&& visit) {
  if (wanted.contiguous) return visit(Stretches{at, 0, wanted.bytes, 1});
  const graph::Layout& layout = wanted.layout;
  const uint64_t whole = wanted.bytes / layout.size_bytes;
  uint64_t left = wanted.bytes % layout.size_bytes;  // of an element that is not whole, the last one
  for (const memory::Range& range : layout.ranges) {
    if (whole > 0 && range.bytes > 0) visit(Stretches{at + range.offset, layout.extent_bytes, range.bytes, whole});
    const uint64_t part = std::min(left, range.bytes);
    if (part > 0) visit(Stretches{at + range.offset + Wide{layout.extent_bytes} * whole, 0, part, 1});
    left -= part;
  }
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

Regions::Found Regions::find(const Wanted& wanted, uint64_t origin, uint64_t& address) const {
  const Found none{by_base_.end(), by_base_.end()};
  if (wanted.bytes == 0) return none;
  const Wide at = Wide{origin} + wanted.offset;
  Wide low = kFarthest, high = -kFarthest;
  for_each_stretch(wanted, at, [&](const Stretches& some) {
    low = std::min(low, some.low());
    high = std::max(high, some.high());
  });
  if (low < 0 || high > UINT64_MAX) return none;
  auto next = by_base_.upper_bound(static_cast<uint64_t>(low));
  if (next == by_base_.begin()) return none;
  const auto begin = std::prev(next);
  // Several regions: none of what lies between them may be named.
  for (Wide covered = begin->second->end(); covered < high; covered = (next++)->second->end()) {
    if (next == by_base_.end()) return none;
    bool outside = false;
    for_each_stretch(wanted, at, [&](const Stretches& some) { outside |= some.touch(covered, next->first); });
    if (outside) return none;
  }
  address = static_cast<uint64_t>(at);
  return {begin, next};
}

}  // namespace offpath::ops::onesided
