// SPDX-License-Identifier: BSD-3-Clause
#include "engine/engine.hpp"
#include "engine/parts.hpp"

#include <algorithm>

namespace offpath::engine {

Standing Engine::standing(TeamHandle handle, uint64_t sequence) const {
  const Parts& parts = *parts_;
  const auto team = parts.core.team_by_handle.find(handle);
  if (team == parts.core.team_by_handle.end()) return {};
  const auto found = team->second->operations.find({.number = sequence});
  if (found == team->second->operations.end()) return {};
  const Operation& operation = *found->second;
  if (operation.graph.in_order && team->second->in_order.front() != &operation) return {.waits = Waits::earlier};
  std::vector<Waits> waits(team->second->spec.members.size(), Waits::service);
  const auto note = [&](uint32_t rank, Waits what) { waits[rank] = std::min(waits[rank], what); };
  for (const Room* room : parts.rooms) room->add_waits(operation, note);
  Standing out{.waits = *std::min_element(waits.begin(), waits.end())};
  if (out.waits == Waits::service) return out;
  for (uint32_t rank = 0; rank < waits.size(); ++rank) {
    if (waits[rank] != out.waits) continue;
    if (++out.count <= base::kNamedMembers) out.members.push_back(rank);
  }
  return out;
}

}  // namespace offpath::engine
