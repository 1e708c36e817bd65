// SPDX-License-Identifier: BSD-3-Clause
// Sets of cores, as the lists in which options have them.
#pragma once

#include <sched.h>

#include <optional>
#include <string>

namespace offpath::base {

// Such as 0-3,6.
std::string ranges_of(const cpu_set_t& cores);
// What such a text names, but for cores that no machine has. Nothing: it is no such text.
std::optional<cpu_set_t> cores_in(const std::string& ranges);

inline cpu_set_t every_core() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &all);
  return all;
}

// Those of them that this process may be bound to, as in a job of a scheduler, whatever it is bound to now: only the kernel
// knows, and says it to a thread that tries.
cpu_set_t usable(cpu_set_t cores);

}  // namespace offpath::base
