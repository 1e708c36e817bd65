// SPDX-License-Identifier: BSD-3-Clause
// Short messages one way between two endpoints of the TCP fabric, each on a thread of its own.
#pragma once

#include "fabric/fabric.hpp"
#include "seal/seal.hpp"

#include <cstddef>

namespace worker_bench {

// On the loopback device of this machine.
std::unique_ptr<offpath::fabric::Fabric> make_socket_endpoint(offpath::seal::Security security);

// How long one takes while many are under way.
double ns_per_message(offpath::seal::Security security, std::size_t bytes, double for_ns);

}  // namespace worker_bench
