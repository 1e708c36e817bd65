// SPDX-License-Identifier: BSD-3-Clause
// Wall time, processor time of this process, processor time of a service beside it.
#pragma once

#include <cstdint>

namespace bench {

std::int64_t now_ns();
// User and system time of all threads of this process.
std::int64_t process_cpu_ns();
// What a preloaded library reports of its helper process; 0 where there is none. Ranks of a node may share a helper.
std::int64_t service_cpu_ns();

}  // namespace bench
