// SPDX-License-Identifier: BSD-3-Clause
#include "ops/collectives/collective.hpp"

#include <unordered_map>

namespace offpath::ops {

Topology Topology::make(uint32_t rank, const std::vector<uint64_t>& node_keys) {
  Topology topology;
  topology.rank = rank;
  std::unordered_map<uint64_t, uint32_t> number_of;
  for (uint32_t member = 0; member < node_keys.size(); ++member) {
    const uint32_t next = topology.nodes();
    const auto [it, is_new] = number_of.emplace(node_keys[member], next);
    if (is_new) topology.members.emplace_back();
    topology.members[it->second].push_back(member);
    topology.node_of.push_back(it->second);
  }
  return topology;
}

}  // namespace offpath::ops
