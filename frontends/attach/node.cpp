// SPDX-License-Identifier: BSD-3-Clause
#include "attach/node.hpp"

#include "base/environment.hpp"
#include "base/node.hpp"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>

namespace offpath::attach {
namespace {

CoreSet affinity_of(pid_t process) {
  CoreSet cores;
  cpu_set_t set;
  static_assert(sizeof(set) * 8 == kMaxCores);
  if (sched_getaffinity(process, sizeof(set), &set) != 0) return cores;
  for (size_t core = 0; core < kMaxCores; ++core) cores[core] = CPU_ISSET(core, &set);
  return cores;
}

}  // namespace

HostName host_name() {
  HostName name{};
  if (gethostname(name.data(), name.size() - 1) != 0) name[0] = '?';
  return name;
}

NodeRecord own_node() {
  const HostName host = host_name();
  const CoreSet bound = affinity_of(0);
  const auto machine = static_cast<size_t>(sysconf(_SC_NPROCESSORS_ONLN));
  const size_t granted = strtoul(base::Environment::text("SLURM_CPUS_ON_NODE").c_str(), nullptr, 10);
  const bool has_dpu =
      !base::Environment::text("OFFPATH_DPUS").empty() || !base::Environment::text("OFFPATH_DPU").empty();
  return {base::node_key(), host, bound, allowed_cores(bound, affinity_of(getppid()), machine, granted), has_dpu};
}

}  // namespace offpath::attach
