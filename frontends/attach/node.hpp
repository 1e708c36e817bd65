// SPDX-License-Identifier: BSD-3-Clause
// What the operating system says about the node of this process.
#pragma once

#include "placement.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace offpath::attach {

using HostName = std::array<char, 64>;

// What a process tells the others about its node. Plain bytes between equal processes of one job.
struct NodeRecord {
  uint64_t key;  // equal for processes that one service can serve: same kernel, host name and network namespace
  HostName host;
  CoreSet bound;    // the cores this process is bound to
  CoreSet allowed;  // the cores that the job may use here: those of this process and of the launcher's daemon that
                    // started it, which is not bound to a rank's core. Never more, other jobs may own the rest
};

NodeRecord own_node();
// Of the running kernel, whose CLOCK_MONOTONIC all its processes read. Empty: it does not say.
std::string boot_id();
// Cut to fit.
HostName host_name();

}  // namespace offpath::attach
