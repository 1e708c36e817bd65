// SPDX-License-Identifier: BSD-3-Clause
#include "ops/collectives/collective.hpp"

#include <mutex>
#include <unordered_map>
#include <utility>

namespace offpath::ops {
namespace {

// The same that is there already, or this one.
std::shared_ptr<const Topology::Nodes> kept_once(Topology::Nodes made) {
  static std::mutex mutex;
  static std::vector<std::weak_ptr<const Topology::Nodes>> known;
  const std::lock_guard lock(mutex);
  std::erase_if(known, [](const auto& one) { return one.expired(); });
  for (const auto& one : known) {
    if (auto same = one.lock(); same != nullptr && *same == made) return same;
  }
  auto fresh = std::make_shared<const Topology::Nodes>(std::move(made));
  known.push_back(fresh);
  return fresh;
}

}  // namespace

Topology Topology::make(uint32_t rank, const std::vector<uint64_t>& node_keys) {
  Nodes made;
  std::unordered_map<uint64_t, uint32_t> number_of;
  for (uint32_t member = 0; member < node_keys.size(); ++member) {
    const auto next = static_cast<uint32_t>(made.members.size());
    const auto [it, is_new] = number_of.emplace(node_keys[member], next);
    if (is_new) made.members.emplace_back();
    made.members[it->second].push_back(member);
    made.node_of.push_back(it->second);
  }
  return {rank, kept_once(std::move(made))};
}

}  // namespace offpath::ops
