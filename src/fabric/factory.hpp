// SPDX-License-Identifier: BSD-3-Clause
// The fabrics of fabrics.def, by name.
#pragma once

#include "fabric/fabric.hpp"
#include "fabric/rdma.hpp"

#include <memory>
#include <string>

namespace offpath::fabric {

struct Made {
  const char* name;  // static; addresses begin with it
  std::unique_ptr<Context> context;
};

// Once per process and before it has other threads (a fabric may set its environment). Empty: `rdma` where a device can be had, else
// `tcp`. That is a fact of one node. Others may have others, as these two reach each other.
base::Result<Made> make(const std::string& name, const JobKey& key);

// Nothing forbids it, and a port of an RDMA device listed in that folder is active.
bool wants_rdma(const std::string& rdma_folder = kRdmaFolder);

}  // namespace offpath::fabric
