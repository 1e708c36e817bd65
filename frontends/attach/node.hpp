// SPDX-License-Identifier: BSD-3-Clause
// What the operating system says about the node of this process.
#pragma once

#include "base/placement.hpp"

#include <array>
#include <cstdint>

namespace offpath::attach {

using HostName = std::array<char, 64>;

// What a process tells the others about its node. Plain bytes between equal processes of one job.
struct NodeRecord {
  uint64_t key;  // equal for processes that one service can serve (base/node.hpp)
  HostName host;
  base::CoreSet bound;    // the cores this process is bound to
  base::CoreSet allowed;  // the cores that the job may use here (base/local_ranks.hpp). Others' jobs may own the rest
  // Its service is an agent, which only passes on: any cores will do.
  bool has_dpu = false;
};

NodeRecord own_node();
// Cut to fit.
HostName host_name();

}  // namespace offpath::attach
