// SPDX-License-Identifier: BSD-3-Clause
// The processes of a job by node, and the cores of every node's service. Pure: the same records give the same answers
// in every process. Processes are named by their rank: the position of their record.
#pragma once

#include "attach/node_records.hpp"
#include "attach/session.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace offpath::attach {

class Nodes {
 public:
  Nodes() = default;
  // Numbers the nodes in the order of their first processes.
  explicit Nodes(const NodeRecords& records);

  uint32_t count() const { return count_; }
  uint32_t of(int rank) const { return numbers_[static_cast<size_t>(rank)]; }
  const char* host_of(int rank) const { return hosts_[of(rank)].data(); }
  Surroundings around(int rank) const;
  // Whether it is the first process of its node.
  bool leads(int rank) const;

 private:
  uint32_t count_ = 0;
  std::vector<uint32_t> numbers_;  // by rank
  std::vector<HostName> hosts_;    // by node
};

struct ServiceCores {
  std::string list;      // as offpath_session_attach takes it; empty: the service chooses
  bool spare = false;    // nobody else computes on them
  bool crowded = false;  // the node's processes outnumber the cores that they are bound to
};

// The cores for the service of `rank`: those of its settings if the terms say so (they may well be the application's
// too), else what the processes leave; an error if any node has none. processes: the front end's word for them.
base::Result<ServiceCores> choose_cores(const Terms& terms, const Settings& settings, const NodeRecords& records,
                                        const Nodes& nodes, int rank, const char* processes);

}  // namespace offpath::attach
