// SPDX-License-Identifier: BSD-3-Clause
// Messages for teams that are not here yet, and for members that are here no longer.
#include "engine/arrivals.hpp"
#include "engine/calls.hpp"
#include "engine/exports.hpp"
#include "engine/imports.hpp"
#include "engine/multicasts.hpp"
#include "engine/peers.hpp"

#include <algorithm>

namespace offpath::engine {

using base::Status;
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
  answer_for_departed(*gone->second, message);
}

void Peers::keep_early(const TeamKey& key, const Message& message, fabric::Bytes payload) {
  // The oldest go first: messages for a team that never comes must not keep out those for one that will.
  while (early_weight_ >= s_.config.parked_limit && !early_order_.empty()) {
    const auto oldest = early_.find(early_order_.front());
    early_order_.pop_front();
    if (oldest != early_.end()) {
      for (const EarlyMessage& dropped : oldest->second) early_weight_ -= dropped.weight();
      s_.refused += oldest->second.size();
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
    s_.dispatch(next.message, next.payload);
  }
}

// Remembers how to reach those who may still ask it; the longest gone are forgotten.
void Peers::depart(const std::shared_ptr<Team>& team) {
  team->memory.reset();
  team->exchange.forget_pulls();
  s_.imports->drop_arrived(*team, 0, UINT64_MAX);
  team->requests.clear();
  const std::vector<Message> armed = Multicasts::take_all_early(*team);
  team->circle.reset();
  s_.arrivals->leave(*team);
  const TeamKey key{team->spec.id, team->spec.rank};
  departed_[key] = team;
  departed_order_.push_back(key);
  departed_weight_ += weight_of(*team);
  while (departed_weight_ > s_.config.parked_limit) {
    const TeamKey oldest = departed_order_.front();
    forget_departed(oldest);
  }
  for (const Message& word : armed) answer_for_departed(*team, word);
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

void Peers::answer_for_departed(Team& team, const Message& message) {
  if (message.kind == Kind::arrived) {
    // Whoever says so waits for the same word from here.
    if (team.abandoned && message.from < team.spec.members.size()) say_lost(team, message.from, team.obituary);
    return;
  }
  const bool from_peer = message.kind == Kind::request || message.kind == Kind::push || message.kind == Kind::task;
  const uint32_t asker = from_peer ? message.from : message.to;
  if (asker >= team.spec.members.size()) return s_.refuse_message("a member that the team does not have");
  if (message.kind == Kind::push) {
    if (!team.spec.members[asker].local) s_.imports->acknowledge(team, {message.number, asker, message.tag});
    return;
  }
  if (message.kind == Kind::task && message.word != wire::Word::armed) return;  // of an operation that has ended
  if (message.kind != Kind::task && s_.exports->settle_push(team, message)) return;
  if (team.abandoned) {
    say_lost(team, asker, team.obituary);
  } else if (message.kind == Kind::request) {
    s_.calls->refuse(team, asker, message.number,
                     Status::error(OFFPATH_ERR_RANGE, "member %u has left the team", team.spec.rank));
  } else if (message.kind == Kind::task) {
    s_.multicasts->decline(team, message);
  } else if (message.channel != Channel::collectives) {
    s_.exports->refuse_pull(team, asker, message.pull_id, OFFPATH_ERR_STATE);
  } else if (team.broken) {  // the operation may have been given up
    if (!pass_loss_on(team, asker, message.number))
      s_.exports->refuse_pull(team, asker, message.pull_id, OFFPATH_ERR_NOT_STARTED);
  } else {
    s_.exports->answer_empty(team, asker, message.pull_id);  // what it exported was taken
  }
}

}  // namespace offpath::engine
