// SPDX-License-Identifier: BSD-3-Clause
// The UCX fabric: active messages of one ucp worker, event driven. UCX chooses the wires (TCP, RDMA, ...) from its
// own OFFPATH_UCX_* variables, and from UCX_* where those are unset.
#pragma once

#include "fabric/fabric.hpp"

#include <memory>
#include <string>

namespace offpath::fabric {

// Created before there are other threads: it sets UCX_* variables. It has no use for the key: UCX lets anybody in, so it
// is refused where OFFPATH_FABRIC_SECURITY asks for something.
base::Result<std::unique_ptr<Context>> open_ucx(const JobKey& key);

// UCX_TLS of the service, made of what it is: without transports inside a node, which services never use, and over which an
// empty datagram from any user ends the process; and, where there is an RDMA network, without TCP, whose port anybody
// reaches and can end the process by, unless OFFPATH_UCX_TLS names it. Empty: all others.
std::string transports_for_services(const std::string& wanted, bool with_tcp);

}  // namespace offpath::fabric
