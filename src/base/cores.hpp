// SPDX-License-Identifier: BSD-3-Clause
// Sets of cores, as the lists in which options have them.
#pragma once

#include <sched.h>

#include <string>

namespace offpath::base {

inline std::string list_of(const cpu_set_t& cores) {
  std::string out;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &cores)) out += (out.empty() ? "" : ",") + std::to_string(core);
  }
  return out;
}

// Those that the calling thread may run on.
inline cpu_set_t own_cores() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof(mine), &mine);
  return mine;
}

}  // namespace offpath::base
