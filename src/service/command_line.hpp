// SPDX-License-Identifier: BSD-3-Clause
// What offpathd is asked for, by its command line and its environment.
#pragma once

#include "service/device_service.hpp"
#include "service/service.hpp"

#include <optional>
#include <string>

namespace offpath::service {

struct CommandLine {
  ServiceOptions service;  // but for socket, token and key
  DeviceServiceOptions devices;
  int listening = -1, token_fd = -1;
  bool serves_devices = false, is_agent = false, for_agents = false, probed = false;
  std::string socket_path;
  std::string address, key_file;  // of the device service
  std::string dpu;                // to be checked
};

// The exit status where there is nothing to do, or nothing that can be understood.
std::optional<int> read_command_line(int argc, char** argv, CommandLine& out);
// What stands there that is not understood is Environment::problem().
void read_environment(ServiceOptions& out);

}  // namespace offpath::service
