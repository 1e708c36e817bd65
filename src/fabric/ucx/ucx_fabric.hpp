// SPDX-License-Identifier: BSD-3-Clause
// The UCX fabric: active messages of one ucp worker, event driven. UCX chooses the wires (TCP, RDMA, ...) from its
// own OFFPATH_UCX_* variables, and from UCX_* where those are unset.
#pragma once

#include "fabric/fabric.hpp"

#include <memory>

namespace offpath::fabric {

// One per process, created before there are other threads (it sets UCX_* variables); must outlive its endpoints.
// Endpoints may be used by different threads.
class UcxContext {
 public:
  static base::Result<std::unique_ptr<UcxContext>> create();
  virtual ~UcxContext() = default;
  virtual base::Result<std::unique_ptr<Fabric>> make_endpoint() = 0;
};

}  // namespace offpath::fabric
