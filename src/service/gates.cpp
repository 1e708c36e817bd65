// SPDX-License-Identifier: BSD-3-Clause
#include "service/gates.hpp"

#include <algorithm>
#include <utility>

namespace offpath::service {

using session::OpKind;

// Behind the last gate there.
void Gates::put(uint64_t team, const Held& held) {
  std::deque<Held>& all = teams_[team].held;
  const auto last = std::find_if(all.rbegin(), all.rend(), [](const Held& one) { return one.kind == OpKind::gate; });
  if (last != all.rend() && order_.is_under_way(held.slot)) order_.note_after(held.slot, last->slot);
  all.push_back(held);
  is_held_[held.slot] = true;
}

bool Gates::hold(uint64_t team, OpKind kind, uint32_t slot) {
  const auto found = teams_.find(team);
  if (found == teams_.end() || found->second.held.empty()) return false;
  put(team, {kind, slot});
  return true;
}

bool Gates::add(uint64_t team, uint32_t slot, Verdict verdict) {
  put(team, {OpKind::gate, slot, verdict});
  if (verdict == Verdict::waits) closed_[slot] = team;
  return teams_.at(team).held.size() == 1;
}

void Gates::open(uint32_t slot, bool well) {
  const auto closed = closed_.extract(slot);
  const auto team = closed.empty() ? teams_.end() : teams_.find(closed.mapped());
  if (team == teams_.end()) return;
  for (Held& held : team->second.held) {
    if (held.kind == OpKind::gate && held.slot == slot) held.verdict = well ? Verdict::ready : Verdict::fails;
  }
  opened_.push_back(team->first);
}

std::optional<uint64_t> Gates::take_opened() {
  if (opened_.empty()) return std::nullopt;
  const uint64_t team = opened_.back();
  opened_.pop_back();
  return team;
}

std::optional<Gates::Held> Gates::next(uint64_t team) {
  const auto found = teams_.find(team);
  if (found == teams_.end() || found->second.held.empty()) return std::nullopt;
  auto& [held, spoilt] = found->second;
  const Held first = held.front();
  if (first.kind == OpKind::gate && first.verdict == Verdict::waits) return std::nullopt;
  held.pop_front();
  is_held_[first.slot] = false;
  spoilt |= first.kind == OpKind::gate && first.verdict == Verdict::fails;
  if (held.empty() && !spoilt) teams_.erase(found);
  return first;
}

bool Gates::take_spoilt(uint64_t team) {
  const auto found = teams_.find(team);
  if (found == teams_.end() || !std::exchange(found->second.spoilt, false)) return false;
  if (found->second.held.empty()) teams_.erase(found);
  return true;
}

void Gates::remove_team(uint64_t team) {
  const auto removed = teams_.extract(team);
  if (removed.empty()) return;
  for (const Held& held : removed.mapped().held) is_held_[held.slot] = false;
}

}  // namespace offpath::service
