// SPDX-License-Identifier: BSD-3-Clause
// The UCX fabric: active messages of one ucp worker, event driven. UCX chooses the wires (TCP, RDMA, ...) from its
// own OFFPATH_UCX_* variables, and from UCX_* where those are unset.
#pragma once

#include "fabric/fabric.hpp"

#include <memory>

namespace offpath::fabric {

// Created before there are other threads: it sets UCX_* variables.
base::Result<std::unique_ptr<Context>> open_ucx();

}  // namespace offpath::fabric
