// SPDX-License-Identifier: BSD-3-Clause
// The UCX fabric: active messages of one ucp worker, event driven. UCX chooses the wires (TCP, RDMA, ...) from its
// own OFFPATH_UCX_* variables, and from UCX_* where those are unset.
#pragma once

#include "fabric/fabric.hpp"

#include <memory>

namespace offpath::fabric {

// Created before there are other threads: it sets UCX_* variables. It has no use for the key: UCX lets anybody in, so it
// is refused where OFFPATH_FABRIC_SECURITY asks for something.
base::Result<std::unique_ptr<Context>> open_ucx(const JobKey& key);

}  // namespace offpath::fabric
