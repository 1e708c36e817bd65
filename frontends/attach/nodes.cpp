// SPDX-License-Identifier: BSD-3-Clause
#include "attach/nodes.hpp"

#include "base/cores.hpp"

#include <algorithm>
#include <span>
#include <unordered_map>

namespace offpath::attach {

using base::CoreSet;
using base::Placement;
using base::Sharing;

Nodes::Nodes(const NodeRecords& records) {
  std::unordered_map<uint64_t, uint32_t> numbers;
  for (size_t process = 0; process < records.size(); ++process) {
    const auto next = static_cast<uint32_t>(numbers.size());
    const auto [node, is_new] = numbers.emplace(records.key_of(process), next);
    numbers_.push_back(node->second);
    if (is_new) hosts_.push_back(records[process].host);
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

// By node, its processes in their order.
std::vector<std::vector<size_t>> by_node(const NodeRecords& records, const Nodes& nodes) {
  std::vector<std::vector<size_t>> there(nodes.count());
  for (size_t i = 0; i < records.size(); ++i) there[nodes.of(static_cast<int>(i))].push_back(i);
  return there;
}

// What the processes of one node say.
std::vector<NodeRecord> of_each(const std::vector<size_t>& processes, const NodeRecords& records) {
  std::vector<NodeRecord> said;
  for (const size_t process : processes) said.push_back(records[process]);
  return said;
}

bool is_crowded(std::span<const NodeRecord> processes) {
  CoreSet bound;
  for (const NodeRecord& each : processes) bound |= each.bound;
  return processes.size() > bound.count();
}

Placement place(std::span<const NodeRecord> processes, Sharing sharing) {
  std::vector<CoreSet> masks;
  CoreSet allowed;
  for (const NodeRecord& each : processes) {
    masks.push_back(each.bound);
    allowed |= each.allowed;
  }
  return base::place_service(masks, allowed, sharing);
}

// Whether the processes leave these cores, as place_service() sees it.
bool are_left(const std::string& list, std::span<const NodeRecord> processes) {
  const auto named = base::cores_in(list);
  CoreSet taken;
  for (const NodeRecord& each : processes) taken |= each.bound;
  taken &= ~place(processes, Sharing::forbidden).cores;
  return named && (base::core_set(*named) & taken).none();
}

}  // namespace

base::Result<ServiceCores> choose_cores(const Terms& terms, const Settings& settings, const NodeRecords& records,
                                        const Nodes& nodes, int rank, const char* processes) {
  const auto all = by_node(records, nodes);
  const auto here = of_each(all[nodes.of(rank)], records);
  const bool crowded = is_crowded(here);
  if (terms.cores_given != 0) {
    const bool spare = terms.share_cores == 0 && are_left(settings.service_cores, here);
    return ServiceCores{settings.service_cores, spare, crowded};
  }
  ServiceCores own{"", false, crowded};
  for (uint32_t node = 0; node < nodes.count(); ++node) {
    const auto there = of_each(all[node], records);
    const bool any_dpu = std::any_of(there.begin(), there.end(), [](const auto& each) { return each.has_dpu; });
    const bool may_share = terms.share_cores != 0 || any_dpu;
    const Placement placement = place(there, may_share ? Sharing::allowed : Sharing::forbidden);
    if (placement.cores.none()) {
      return base::Status::error(OFFPATH_ERR_NO_SERVICE,
                                 "no spare core on host %s for the service (its %s use them all). Leave one free, "
                                 "name cores with OFFPATH_SERVICE_CORES, or set OFFPATH_SERVICE_SHARE=1",
                                 there.front().host.data(), processes);
    }
    if (node == nodes.of(rank)) own = {base::core_list(placement.cores), !placement.shared, crowded};
  }
  return own;
}

}  // namespace offpath::attach
