// SPDX-License-Identifier: BSD-3-Clause
#include "attach/node.hpp"

#include "base/environment.hpp"
#include "base/local_ranks.hpp"
#include "base/node.hpp"

#include <unistd.h>

namespace offpath::attach {

HostName host_name() {
  HostName name{};
  if (gethostname(name.data(), name.size() - 1) != 0) name[0] = '?';
  return name;
}

NodeRecord own_node() {
  const HostName host = host_name();
  const bool has_dpu =
      !base::Environment::text("OFFPATH_DPUS").empty() || !base::Environment::text("OFFPATH_DPU").empty();
  return {base::node_key(), host, base::affinity_of(0), base::own_allowed_cores(), has_dpu};
}

}  // namespace offpath::attach
