// SPDX-License-Identifier: BSD-3-Clause
// How an agent comes to the service of its job on a DPU: by what OFFPATH_DPU says. Both ends of that are here: what
// `offpathd --for-agents` prints is a line of JSON, the only one that the agent reads.
#pragma once

#include "base/result.hpp"

#include <string>
#include <vector>

namespace offpath::agent {

struct Reached {
  std::vector<std::vector<uint8_t>> addresses;  // on the fabric: a door at each worker
  std::string version;                          // of Offpath there
  std::string machine;                          // as uname has it
  uint32_t cores = 0;
};

std::string to_line(const Reached& reached);
// Errors: OFFPATH_ERR_NO_SERVICE, with what was said instead.
base::Result<Reached> from_line(const std::string& line);

// `exec:COMMAND`: the shell runs it, with the token on its standard input. Waits for its line at most timeout_ms; a command
// that is late is ended. HOST:PORT: the starter there says it (device/starter.hpp).
base::Result<Reached> reach(const std::string& dpu, const uint8_t (&token)[OFFPATH_TOKEN_BYTES], int timeout_ms);

}  // namespace offpath::agent
