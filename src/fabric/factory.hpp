// SPDX-License-Identifier: BSD-3-Clause
// The fabrics of fabrics.def, by name.
#pragma once

#include "fabric/fabric.hpp"
#include "fabric/rdma.hpp"

#include <memory>
#include <string>

namespace offpath::fabric {

struct Made {
  const char* name;  // static
  std::unique_ptr<Context> context;
};

// Once per process and before it has other threads (a fabric may set its environment). Empty: the usual one.
base::Result<Made> make(const std::string& name, const JobKey& key);

// `rdma` where a port of an RDMA device listed in that folder is active, else `tcp`. A fact of one node: others may have
// others, and then they learn it when they connect (named.hpp).
const char* usual_fabric(const std::string& rdma_folder = kRdmaFolder);

}  // namespace offpath::fabric
