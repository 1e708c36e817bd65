// SPDX-License-Identifier: BSD-3-Clause
#include "base/steady.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace offpath::base {
namespace {

struct Known {
  std::mutex mutex;
  std::map<uintptr_t, Steady::Range> ranges;  // by where they begin
  std::vector<Steady::Keeper*> keepers;
};

// Never destroyed: other objects may outlive whatever the end of a process destroys first.
Known& known() {
  static auto* const only = new Known;
  return *only;
}

}  // namespace

Steady::Steady(const void* data, size_t bytes, Pages pages)
    : range_{reinterpret_cast<uintptr_t>(data), reinterpret_cast<uintptr_t>(data) + bytes, pages} {
  const std::lock_guard lock(known().mutex);
  known().ranges[range_.begin] = range_;
}

Steady::Steady(Steady&& other) noexcept : range_(std::exchange(other.range_, {})) {}

Steady& Steady::operator=(Steady&& other) noexcept {
  std::swap(range_, other.range_);
  return *this;
}

Steady::~Steady() {
  if (range_.begin == range_.end) return;
  const std::lock_guard lock(known().mutex);
  for (Keeper* const keeper : known().keepers) keeper->on_end(range_);
  known().ranges.erase(range_.begin);
}

std::optional<Steady::Range> Steady::around(const void* data, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const std::lock_guard lock(known().mutex);
  const auto next = known().ranges.upper_bound(begin);
  if (next == known().ranges.begin()) return std::nullopt;
  const Range& range = std::prev(next)->second;
  if (begin >= range.end || bytes > range.end - begin) return std::nullopt;
  return range;
}

void Steady::add(Keeper& keeper) {
  const std::lock_guard lock(known().mutex);
  known().keepers.push_back(&keeper);
}

void Steady::remove(Keeper& keeper) {
  const std::lock_guard lock(known().mutex);
  std::erase(known().keepers, &keeper);
}

}  // namespace offpath::base
