// SPDX-License-Identifier: BSD-3-Clause
// Who notices whose death (docs/design/0059-watchers.md). Those workers of a team that say arrivals to each other are connected by its
// first operation. Who finds that a service is gone, and not only a connection to it, says so to those, and so does each
// that hears of it, once. In the place of one that is gone is the next one behind it: so all that are left form a ring,
// whoever is gone.
#include "engine/carriers/sender.hpp"
#include "engine/rooms/arrivals.hpp"
#include "engine/rooms/peers.hpp"

#include <algorithm>

namespace offpath::engine {

using wire::Channel;
using wire::Kind;
using wire::Message;

// A member of each.
std::vector<uint32_t> Peers::watched_by(const Team& team) const {
  const Roster& roster = team.spec.members;
  const auto workers = static_cast<uint32_t>(roster.workers().size());
  std::vector<uint32_t> member(workers, UINT32_MAX);  // one that is not lost
  for (auto rank = static_cast<uint32_t>(roster.size()); rank-- > 0;) {
    if (team.lost[rank] == 0) member[roster.worker_of(rank)] = rank;
  }
  const uint32_t own = roster.worker_of(team.spec.rank);
  std::vector<uint32_t> found;
  std::vector<bool> seen(workers);
  seen[own] = true;
  const auto watch = [&](uint32_t first, uint32_t step) {
    uint32_t to = first % workers;
    while (to != own && member[to] == UINT32_MAX) to = (to + step) % workers;
    if (!seen[to]) found.push_back(member[to]);
    seen[to] = true;
  };
  for (const Gathering::Word& word : Gathering::plan(workers, config_.arrivals_radix)) {
    watch(own + word.ahead, 1);
    watch(own + workers - word.ahead, workers - 1);
  }
  return found;
}

// It also tells them that there is somebody to push to.
void Peers::say_hello(Team& team) {
  if (team.said_hello) return;
  team.said_hello = true;
  for (const uint32_t rank : watched_by(team)) greet(team, rank);
}

// False: that was done, or need not be.
bool Peers::greet(Team& team, uint32_t rank) {
  const uint32_t worker = team.spec.members.worker_of(rank);
  if (team.spec.members[rank].local || std::ranges::find(team.greeted, worker) != team.greeted.end()) return false;
  team.greeted.push_back(worker);
  send(team, rank, about(Kind::hello, team, Channel::collectives, 0, team.spec.rank, rank));
  for (const auto& [gone, how] : team.gone) say_gone(team, rank, gone, how);
  return true;
}

// The sender has opened the connection, to all members here. A team that is created here later hears of that member when
// it asks for something. The sender hears of those that were gone before. Where a connection was made again, a team may
// have lost here whom it first speaks to there.
void Peers::handle_hello(const Message& message) {
  bool has_told = false;
  for (auto next = core_.teams.lower_bound({message.team, 0}); next != core_.teams.end(); ++next) {
    const auto& [key, team] = *next;
    if (key.id != message.team) return;
    if (message.from >= team->spec.members.size()) return core_.refuse_message("a member that the team does not have");
    int64_t& peer = team->peers[team->spec.members.worker_of(message.from)];
    if (peer >= 0 && sender_.is_lost(static_cast<fabric::Peer>(peer))) {
      peer = -1;  // so it goes by the new connection
      say_lost(*team, message.from, obituary_of(Loss::service));
    } else {
      team->exchange.note_present(message.from);
    }
    if (std::exchange(has_told, true)) continue;
    for (const auto& [rank, how] : team->gone) say_gone(*team, message.from, rank, how);
  }
}

void Peers::say_gone(Team& team, uint32_t to, uint32_t rank, Loss how) {
  Message gone = about(Kind::gone, team, Channel::collectives, wire::kNoOperation, rank, to);
  gone.status = obituary_of(how);
  send(team, to, gone);
}

void Peers::handle_gone(const Message& message) {
  const auto team = core_.teams.lower_bound({message.team, 0});
  if (team == core_.teams.end() || team->first.id != message.team) return;  // it asks when it says hello
  const TeamSpec& spec = team->second->spec;
  if (message.from >= spec.members.size()) return core_.refuse_message("a member that the team does not have");
  if (!spec.members[message.from].local) lose_service(message.team, message.from, loss_of(message.status));
}

void Peers::lose_service(const wire::TeamId& id, uint32_t rank, Loss how) {
  std::vector<std::shared_ptr<Team>> here;
  for (auto next = core_.teams.lower_bound({id, 0}); next != core_.teams.end() && next->first.id == id; ++next)
    here.push_back(next->second);
  Members lost;
  bool is_news = false;
  for (const auto& team : here) {
    const Roster& members = team->spec.members;
    is_news |= team->gone.try_emplace(rank, how).second;
    for (uint32_t each = 0; each < members.size(); ++each) {
      const bool is_there = members.worker_of(each) == members.worker_of(rank);
      if (is_there && team->lost[each] == 0) lost.emplace_back(team, each);
    }
  }
  lose_members(lost, how);
  if (!is_news) return;
  for (const uint32_t to : watched_by(*here.front())) {
    if (!greet(*here.front(), to)) say_gone(*here.front(), to, rank, how);
  }
}

// It was lost in some teams, and cannot be reached again.
void Peers::note_gone(const std::vector<uint8_t>& address) {
  Members found;
  for (const auto& [key, team] : core_.teams) {
    const Roster& members = team->spec.members;
    for (uint32_t rank = 0; team->broken && rank < members.size(); ++rank) {
      if (team->lost[rank] == 0 || members[rank].local || members[rank].address != address) continue;
      found.emplace_back(team, rank);
      break;
    }
  }
  for (const auto& [team, rank] : found) {
    lose_service(team->spec.id, rank, is_given_up(*team, rank) ? Loss::silence : Loss::service);
  }
}

}  // namespace offpath::engine
