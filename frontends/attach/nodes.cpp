// SPDX-License-Identifier: BSD-3-Clause
#include "attach/nodes.hpp"

#include <algorithm>
#include <unordered_map>

namespace offpath::attach {

using base::CoreSet;
using base::Placement;
using base::Sharing;

Nodes::Nodes(std::span<const NodeRecord> records) {
  std::unordered_map<uint64_t, uint32_t> numbers;
  for (const NodeRecord& record : records) {
    const auto next = static_cast<uint32_t>(numbers.size());
    const auto [node, is_new] = numbers.emplace(record.key, next);
    numbers_.push_back(node->second);
    if (is_new) hosts_.push_back(record.host);
  }
  count_ = static_cast<uint32_t>(numbers.size());
}

Surroundings Nodes::around(int rank) const {
  return {count_, static_cast<uint32_t>(std::count(numbers_.begin(), numbers_.end(), of(rank)))};
}

bool Nodes::leads(int rank) const {
  return std::find(numbers_.begin(), numbers_.end(), of(rank)) - numbers_.begin() == rank;
}

namespace {

bool is_crowded(std::span<const NodeRecord> records, const Nodes& nodes, uint32_t node) {
  CoreSet bound;
  size_t processes = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    if (nodes.of(static_cast<int>(i)) != node) continue;
    bound |= records[i].bound;
    ++processes;
  }
  return processes > bound.count();
}

}  // namespace

base::Result<ServiceCores> choose_cores(const Terms& terms, const Settings& settings,
                                        std::span<const NodeRecord> records, const Nodes& nodes, int rank,
                                        const char* processes) {
  const bool crowded = is_crowded(records, nodes, nodes.of(rank));
  ServiceCores own{settings.service_cores, false, crowded};
  if (terms.cores_given != 0) return own;
  for (uint32_t node = 0; node < nodes.count(); ++node) {
    std::vector<CoreSet> masks;
    CoreSet allowed;
    const char* host = "";
    bool may_share = terms.share_cores != 0;
    for (size_t i = 0; i < records.size(); ++i) {
      if (nodes.of(static_cast<int>(i)) != node) continue;
      masks.push_back(records[i].bound);
      allowed |= records[i].allowed;
      host = records[i].host.data();
      may_share |= records[i].has_dpu;
    }
    const Placement placement = base::place_service(masks, allowed, may_share ? Sharing::allowed : Sharing::forbidden);
    if (placement.cores.none()) {
      return base::Status::error(OFFPATH_ERR_NO_SERVICE,
                                 "no spare core on host %s for the service (its %s use them all). Leave one free, "
                                 "name cores with OFFPATH_SERVICE_CORES, or set OFFPATH_SERVICE_SHARE=1",
                                 host, processes);
    }
    if (node == nodes.of(rank)) own = {base::core_list(placement.cores), !placement.shared, crowded};
  }
  return own;
}

}  // namespace offpath::attach
