// SPDX-License-Identifier: BSD-3-Clause
#include "memory/aliases.hpp"

#include <algorithm>

namespace offpath::memory {

void Aliases::set(std::vector<Alias> aliases) {
  std::lock_guard lock(mutex_);
  aliases_ = std::move(aliases);
  any_.store(!aliases_.empty(), std::memory_order_release);
}

Aliases::Found Aliases::find(uint64_t address, uint64_t bytes) const {
  if (!any_.load(std::memory_order_acquire)) return {std::nullopt, bytes};
  std::lock_guard lock(mutex_);
  const auto after = std::upper_bound(aliases_.begin(), aliases_.end(), address,
                                      [](uint64_t value, const Alias& alias) { return value < alias.address; });
  if (after != aliases_.begin()) {
    const Alias& alias = *std::prev(after);
    const uint64_t within = address - alias.address;
    if (within < alias.bytes) return {alias.offset + within, std::min(bytes, alias.bytes - within)};
  }
  return {std::nullopt, after == aliases_.end() ? bytes : std::min(bytes, after->address - address)};
}

}  // namespace offpath::memory
