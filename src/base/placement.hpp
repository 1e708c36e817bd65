// SPDX-License-Identifier: BSD-3-Clause
// Which cores of a node the service's workers get. Pure: the same masks give the same answer on every rank.
#pragma once

#include <sched.h>

#include <bitset>
#include <span>
#include <string>

namespace offpath::base {

inline constexpr size_t kMaxCores = 1024;
using CoreSet = std::bitset<kMaxCores>;

// As the kernel has them.
CoreSet core_set(const cpu_set_t& cores);

// The cores that the job may use on a node, as one of its processes sees it, bound to `bound`: also those of the daemon
// that started it, `launcher`. Unless that may use the whole machine's, which are `machine_count`, and the scheduler has
// given the job fewer here (`granted_count`; 0: it does not say): then it is not bound itself, and the rest is others'.
CoreSet allowed_cores(const CoreSet& bound, const CoreSet& launcher, size_t machine_count, size_t granted_count);

enum class Sharing { forbidden, allowed };

struct Placement {
  CoreSet cores;        // empty: no service may run here
  bool shared = false;  // the cores are the application's own
};

// masks: the affinity masks of the node's ranks; allowed: all cores the job may use on the node.
// A rank whose mask covers all allowed cores counts as unbound and takes one core, from the first on. Spare is what
// no rank is bound to, less one core per unbound rank. Without spare cores: the ranks' own, if sharing is allowed.
Placement place_service(std::span<const CoreSet> masks, const CoreSet& allowed, Sharing sharing);

// "0,2,3", as OFFPATH_SERVICE_CORES reads it.
std::string core_list(const CoreSet& cores);

}  // namespace offpath::base
