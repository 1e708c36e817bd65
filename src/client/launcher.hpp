// SPDX-License-Identifier: BSD-3-Clause
// Starting the service: a process that is nobody's child, holds none of this process's descriptors, and already has
// the listening socket, so whoever connects is served as soon as it runs.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <string>

namespace offpath::client {

// Creates the socket and starts offpathd on it. Returns when the program was executed, not when it serves, with its
// process (base::open_process).
base::Result<base::Fd> start_service(const std::string& socket_path, const offpath_attach_params_t& params);
// The same program as the node's device service (docs/design/0006-openmp.md). Where no core is spare it uses the
// program's: target regions have nowhere else to run.
base::Status start_device_service(const std::string& socket_path);

}  // namespace offpath::client
