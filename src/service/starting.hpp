// SPDX-License-Identifier: BSD-3-Clause
// The starter's part of a request for a job's service: runs `offpathd --for-agents`, which finds the service or starts it.
// In a process of the request's own.
#pragma once

#include "device/starter.hpp"

#include <optional>
#include <string>
#include <vector>

namespace offpath::service {

struct StartingOptions {
  std::vector<std::string> words;  // of the command that prints the line
  std::string cores;               // where a request names none
  bool shares_cores = false;       // with an application, whatever a request says
  uint32_t most = 64;              // jobs served at a time
  pid_t starter = 0;               // whose children they are
};

// The services of jobs that `starter` has: each is a session of its own.
std::vector<pid_t> jobs_of(pid_t starter);

// The line, or why there is none; as another user, for a starter that is root's. No user: as who we are.
base::Result<std::string> start_as(std::optional<uid_t> user, const device::StartRequest& request,
                                   const StartingOptions& options);

}  // namespace offpath::service
