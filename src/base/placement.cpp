// SPDX-License-Identifier: BSD-3-Clause
#include "base/placement.hpp"

namespace offpath::base {

CoreSet core_set(const cpu_set_t& cores) {
  static_assert(sizeof(cores) * 8 == kMaxCores);
  CoreSet found;
  for (size_t core = 0; core < kMaxCores; ++core) found[core] = CPU_ISSET(core, &cores);
  return found;
}

CoreSet allowed_cores(const CoreSet& bound, const CoreSet& launcher, size_t machine_count, size_t granted_count) {
  const bool others = granted_count > 0 && granted_count < machine_count && launcher.count() >= machine_count;
  return others ? bound : bound | launcher;
}

Placement place_service(std::span<const CoreSet> masks, const CoreSet& allowed, Sharing sharing) {
  CoreSet everything = allowed;
  for (const CoreSet& mask : masks) everything |= mask;
  CoreSet used;
  CoreSet bound;
  size_t unbound_count = 0;
  for (const CoreSet& mask : masks) {
    used |= mask;
    if (mask == everything)
      ++unbound_count;
    else
      bound |= mask;
  }
  Placement placement;
  placement.cores = everything & ~bound;
  // The first cores are left to the unbound ranks: schedulers and other daemons fill machines from there.
  for (size_t core = 0; core < kMaxCores && unbound_count > 0; ++core) {
    if (!placement.cores[core]) continue;
    placement.cores.reset(core);
    --unbound_count;
  }
  if (placement.cores.none() && sharing == Sharing::allowed) {
    placement.cores = used;
    placement.shared = true;
  }
  return placement;
}

std::string core_list(const CoreSet& cores) {
  std::string text;
  for (size_t core = 0; core < kMaxCores; ++core) {
    if (!cores[core]) continue;
    if (!text.empty()) text += ',';
    text += std::to_string(core);
  }
  return text;
}

}  // namespace offpath::base
