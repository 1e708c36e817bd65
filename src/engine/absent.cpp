// SPDX-License-Identifier: BSD-3-Clause
// Messages for teams that are not here yet, and for members that are here no longer.
#include "engine/exports.hpp"
#include "engine/multicasts.hpp"

#include <algorithm>

namespace offpath::engine {

using base::Status;
using wire::Channel;
using wire::Kind;
using wire::Message;

// Pulls, pushes and requests only: nobody waits for an answer to anything else. Nobody pushes to a member before it is
// here, so a pushed block came after its end.
void Engine::State::handle_absent(const TeamKey& key, const Message& message, fabric::Bytes payload) {
  const auto gone = departed.find(key);
  if (gone == departed.end() && message.kind == Kind::push) return;
  if (gone == departed.end()) return keep_early(key, message, payload);
  answer_for_departed(*gone->second, message);
}

void Engine::State::keep_early(const TeamKey& key, const Message& message, fabric::Bytes payload) {
  // The oldest go first: messages for a team that never comes must not keep out those for one that will.
  if (early_weight >= config.parked_limit && !early_order.empty()) {
    const auto oldest = early.find(early_order.front());
    early_order.pop_front();
    if (oldest != early.end()) {
      for (const EarlyMessage& dropped : oldest->second) early_weight -= dropped.weight();
      refused += oldest->second.size();
      early.erase(oldest);
    }
  }
  if (!early.contains(key)) early_order.push_back(key);
  early[key].push_back({message, {payload.begin(), payload.end()}});
  early_weight += early[key].back().weight();
}

void Engine::State::deliver_early(const TeamKey& key) {
  const auto found = early.find(key);
  if (found == early.end()) return;
  const std::vector<EarlyMessage> messages = std::move(found->second);
  early.erase(found);
  std::erase(early_order, key);
  for (const EarlyMessage& next : messages) {
    early_weight -= next.weight();
    dispatch(next.message, next.payload);
  }
}

// Remembers how to reach those who may still ask it; the longest gone are forgotten.
void Engine::State::depart(const std::shared_ptr<Team>& team) {
  team->memory.reset();
  team->exchange.forget_pulls();
  drop_arrived(*team, 0, UINT64_MAX);
  team->requests.clear();
  const std::vector<Message> armed = Multicasts::take_all_early(*team);
  team->circle.reset();
  const TeamKey key{team->spec.id, team->spec.rank};
  departed[key] = team;
  departed_order.push_back(key);
  departed_members += team->spec.members.size();
  while (departed_members > config.parked_limit) {
    const TeamKey oldest = departed_order.front();
    forget_departed(oldest);
  }
  for (const Message& word : armed) answer_for_departed(*team, word);
}

void Engine::State::forget_departed(const TeamKey& key) {
  const auto found = departed.find(key);
  if (found == departed.end()) return;
  departed_members -= found->second->spec.members.size();
  departed.erase(found);
  departed_order.erase(std::find(departed_order.begin(), departed_order.end(), key));
}

void Engine::State::answer_for_departed(Team& team, const Message& message) {
  const bool from_peer = message.kind == Kind::request || message.kind == Kind::push || message.kind == Kind::task;
  const uint32_t asker = from_peer ? message.from : message.to;
  if (asker >= team.spec.members.size()) return refuse_message("a member that the team does not have");
  if (message.kind == Kind::push) {
    if (!team.spec.members[asker].local) acknowledge(team, {message.number, asker, message.tag});
    return;
  }
  if (message.kind == Kind::task && message.word != wire::Word::armed) return;  // of an operation that has ended
  if (message.kind != Kind::task && exports->settle_push(team, message)) return;
  if (team.abandoned) {
    Message lost = about(Kind::lost, team, Channel::collectives, wire::kNoOperation, team.spec.rank, asker);
    lost.status = team.obituary;
    send(team, asker, lost);
  } else if (message.kind == Kind::request) {
    reply(team, asker, message.number, Status::error(OFFPATH_ERR_RANGE, "member %u has left the team", team.spec.rank),
          {});
  } else if (message.kind == Kind::task) {
    multicasts->decline(team, message);
  } else if (message.channel != Channel::collectives) {
    exports->refuse_pull(team, asker, message.pull_id, OFFPATH_ERR_STATE);
  } else if (team.broken) {
    exports->refuse_pull(team, asker, message.pull_id,
                         OFFPATH_ERR_NOT_STARTED);  // the operation may have been given up
  } else {
    exports->answer_empty(team, asker, message.pull_id);  // what it exported was taken
  }
}

}  // namespace offpath::engine
