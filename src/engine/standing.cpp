// SPDX-License-Identifier: BSD-3-Clause
#include "engine/arrivals.hpp"
#include "engine/imports.hpp"
#include "engine/multicasts.hpp"

#include <algorithm>

namespace offpath::engine {

Waits State::look_for(const Operation& operation, uint32_t rank) const {
  if (operation.has_begun(rank)) return Waits::sends;
  const auto here = teams.find({operation.team->spec.id, rank});
  if (here == teams.end()) return Waits::silent;
  return here->second->next_sequence > operation.key.number ? Waits::sends : Waits::not_posted;
}

Standing Engine::standing(TeamHandle handle, uint64_t sequence) const {
  const State& s = *state_;
  const auto team = s.team_by_handle.find(handle);
  if (team == s.team_by_handle.end()) return {};
  const auto found = team->second->operations.find({.number = sequence});
  if (found == team->second->operations.end()) return {};
  const Operation& operation = *found->second;
  if (operation.graph.in_order && team->second->in_order.front() != &operation) return {.waits = Waits::earlier};
  std::vector<Waits> waits(team->second->spec.members.size(), Waits::service);
  const auto note = [&](uint32_t rank, Waits what) { waits[rank] = std::min(waits[rank], what); };
  for (const auto& [id, pull] : s.imports->pulls()) {
    if (pull.operation != &operation || operation.graph.steps[pull.step].tag == kEndingTag) continue;
    const uint32_t peer = operation.graph.steps[pull.step].peer;
    note(peer, s.look_for(operation, peer));
  }
  for (const uint32_t peer : s.multicasts->awaited(operation)) note(peer, s.look_for(operation, peer));
  std::vector<uint8_t> arriving(waits.size());
  s.arrivals->add_awaited(operation, arriving);
  for (uint32_t rank = 0; rank < arriving.size(); ++rank) {
    if (arriving[rank] != 0) note(rank, Waits::takes);
  }
  for (size_t i = 0; i < operation.exports.size(); ++i) {
    const Export& block = operation.graph.exports[i];
    const bool ready = block.after == kNoStep || operation.steps[block.after].done;
    if (operation.exports[i].state == ExportState::resolved || !ready) continue;
    const Waits known = s.look_for(operation, block.peer);
    note(block.peer, known == Waits::sends ? Waits::takes : known);
  }
  Standing out{.waits = *std::min_element(waits.begin(), waits.end())};
  if (out.waits == Waits::service) return out;
  for (uint32_t rank = 0; rank < waits.size(); ++rank) {
    if (waits[rank] != out.waits) continue;
    if (++out.count <= base::kNamedMembers) out.members.push_back(rank);
  }
  return out;
}

}  // namespace offpath::engine
