// SPDX-License-Identifier: BSD-3-Clause
// Processor time of a service beside it or on another machine of a lab.
#pragma once

#include <cstdint>

namespace bench {

// What a preloaded library reports of its helper process; 0 where there is none. Ranks of a node may share a helper.
std::int64_t service_cpu_ns();

// A lab may have services on machines of their own, whose processes are seen from its hosts. OFFPATH_BENCH_SERVICES_AT
// names their network namespace, with %h for the host's name where each host has another.
enum class FarServices { none, of_each_host, of_all_hosts };
FarServices far_services();
// Processor time of those of this host; what service_cpu_ns() says is their agent's then.
std::int64_t far_services_cpu_ns();

}  // namespace bench
