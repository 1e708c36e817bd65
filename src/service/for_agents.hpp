// SPDX-License-Identifier: BSD-3-Clause
// `offpathd --for-agents`: finds the service of a job on this machine, or starts it, has it open doors for an agent, and
// says where that is (agent/reach.hpp).
#pragma once

#include "agent/reach.hpp"

namespace offpath::service {

struct ForAgentsOptions {
  uint8_t token[OFFPATH_TOKEN_BYTES] = {};
  std::string cores;          // of the service, if it is to be started; empty: those that this process may use
  std::string executor;       // its --executor
  bool shares_cores = false;  // of it, with the application: on a machine that only plays a DPU
  int timeout_ms = 10000;
};

base::Result<agent::Reached> reach_for_agent(const ForAgentsOptions& options);

}  // namespace offpath::service
