// SPDX-License-Identifier: BSD-3-Clause
// Messages for teams that are not here yet, and for members that are here no longer.
#include "engine/rooms/messages.hpp"
#include "engine/rooms/peers.hpp"

#include <algorithm>

namespace offpath::engine {

using wire::Channel;
using wire::Kind;
using wire::Message;

namespace {

// Programs make and free small teams for days: what is kept of each takes as much as that many members.
constexpr size_t kLeastWeight = 16;

size_t weight_of(const Team& team) { return std::max(size_t{team.spec.members.size()}, kLeastWeight); }

}  // namespace

// Pulls, pushes and requests only: nobody waits for an answer to anything else. Nobody pushes to a member before it is
// here, so a pushed block came after its end.
void Peers::handle_absent(const TeamKey& key, const Message& message, fabric::Bytes payload) {
  const auto gone = departed_.find(key);
  if (gone == departed_.end() && message.kind == Kind::push) return;
  if (gone == departed_.end()) return keep_early(key, message, payload);
  rooms_[static_cast<size_t>(room_of(message.kind))]->on_absent(*gone->second, message);
}

void Peers::keep_early(const TeamKey& key, const Message& message, fabric::Bytes payload) {
  // The oldest go first: messages for a team that never comes must not keep out those for one that will.
  while (early_weight_ >= config_.parked_limit && !early_order_.empty()) {
    const auto oldest = early_.find(early_order_.front());
    early_order_.pop_front();
    if (oldest != early_.end()) {
      for (const EarlyMessage& dropped : oldest->second) early_weight_ -= dropped.weight();
      core_.refused += oldest->second.size();
      early_.erase(oldest);
    }
  }
  if (!early_.contains(key)) early_order_.push_back(key);
  early_[key].push_back({message, {payload.begin(), payload.end()}});
  early_weight_ += early_[key].back().weight();
}

void Peers::arrive(const TeamKey& key) {
  forget_departed(key);
  const auto found = early_.find(key);
  if (found == early_.end()) return;
  const std::vector<EarlyMessage> messages = std::move(found->second);
  early_.erase(found);
  std::erase(early_order_, key);
  for (const EarlyMessage& next : messages) {
    early_weight_ -= next.weight();
    messages_.dispatch(next.message, next.payload);
  }
}

// Remembers how to reach those who may still ask it; the longest gone are forgotten.
void Peers::depart(const std::shared_ptr<Team>& team) {
  team->memory.reset();
  for (Room* room : rooms_) room->leave(*team);
  const TeamKey key{team->spec.id, team->spec.rank};
  departed_[key] = team;
  departed_order_.push_back(key);
  departed_weight_ += weight_of(*team);
  while (departed_weight_ > config_.parked_limit) {
    const TeamKey oldest = departed_order_.front();
    forget_departed(oldest);
  }
}

void Peers::forget_if_unused(const Team& team) {
  if (const auto gone = core_.take_unused(team)) depart(gone);
}

void Peers::forget_departed(const TeamKey& key) {
  const auto found = departed_.find(key);
  if (found == departed_.end()) return;
  departed_weight_ -= weight_of(*found->second);
  departed_.erase(found);
  departed_order_.erase(std::find(departed_order_.begin(), departed_order_.end(), key));
}

void Peers::say_lost(Team& team, uint32_t rank, int32_t obituary) {
  Message lost = about(Kind::lost, team, Channel::collectives, wire::kNoOperation, team.spec.rank, rank);
  lost.status = obituary;
  send(team, rank, lost);
}

bool Peers::say_abandoned(Team& team, uint32_t rank) {
  if (team.abandoned) say_lost(team, rank, team.obituary);
  return team.abandoned;
}

}  // namespace offpath::engine
