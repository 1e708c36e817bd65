// SPDX-License-Identifier: BSD-3-Clause
// What adaptation has found out in this process, for the statistics; later runs begin with it.
//
// Threads: any.
#pragma once

#include "attach/statistics.hpp"
#include "policy/adaptation.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace offpath::mpi {

class Learned {
 public:
  // `bits`: sizes of that many binary digits. Of several lanes the one with most turns counts.
  void add(policy::Collective collective, uint32_t bits, uint32_t nodes, const policy::Adaptation& adaptation);
  // {"ialltoall:512K-1M:nodes=2": {"path", "why", "host_ns", "dpu_ns" (0: unknown), "turns_count", "switches_count",
  //  "explored_count"}}
  attach::JsonObject json() const;

 private:
  struct Entry {
    policy::Path path;
    policy::Why why;
    uint64_t host_ns, dpu_ns, turns, switches, explored;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace offpath::mpi
