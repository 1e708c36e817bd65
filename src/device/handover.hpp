// SPDX-License-Identifier: BSD-3-Clause
// Local devices: a client connects to the node's device service (the folder and socket of session/link.hpp) and sends
// one message, with what its regions shall share with it: standard output and error, working folder, environment. The
// connection then becomes the executor's channel.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <string>
#include <vector>

namespace offpath::device {

// The socket of this user's device service on this node; different choices of cores are different services.
base::Result<std::string> device_socket_path();
// OFFPATH_ERR_NO_SERVICE: nobody listens there.
base::Result<base::Fd> connect_local(const std::string& path);

struct Handover {
  base::Fd output, error, folder;
  std::vector<std::string> environment;
};
base::Result<Handover> receive_handover(int socket, int timeout_ms);

}  // namespace offpath::device
