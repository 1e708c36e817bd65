// SPDX-License-Identifier: BSD-3-Clause
#include "engine/carriers/sender.hpp"
#include "engine/rooms/arrivals.hpp"
#include "engine/rooms/peers.hpp"

namespace offpath::engine {

using base::Status;
using wire::Kind;
using wire::Message;

void Peers::lose_peer(fabric::Peer peer) {
  sender_.lose(peer);
  Members lost;
  for (const auto& [key, team] : core_.teams) {
    const auto found = std::find(team->peers.begin(), team->peers.end(), static_cast<int64_t>(peer));
    for (uint32_t rank = 0; found != team->peers.end() && rank < team->spec.members.size(); ++rank) {
      if (team->peer(rank) == static_cast<int64_t>(peer)) lost.emplace_back(team, rank);
    }
  }
  lose_members(lost, Loss::service);
  const auto sought = sought_.extract(peer);
  if (!lost.empty()) {
    seek(lost.front().first->spec.members[lost.front().second].address);
  } else if (!sought.empty()) {
    seek(sought.mapped());
  }
  runner_.settle();
}

// All of them are marked before any operation ends, so that the owner learns of all lost members at once.
void Peers::lose_members(const Members& lost, Loss how) {
  for (const auto& [team, rank] : lost) {
    tell_loss(*team, rank, how);
  }
  for (const auto& [team, rank] : lost) lose_member(*team, rank, how);
}

// Its answer, or its own question, comes by a connection that both sides have made since, so both know of the loss.
void Peers::seek(const std::vector<uint8_t>& address) {
  const auto again = fabric_.connect(address);
  if (!again.ok() || sender_.is_lost(again.value())) return note_gone(address);
  if (sought_.try_emplace(again.value(), address).second) say_address(again.value(), Kind::ping, 0);
}

void Peers::note_found(const std::vector<uint8_t>& address) {
  for (const auto& [key, team] : core_.teams) {
    for (uint32_t rank = 0; team->broken && rank < team->lost.size(); ++rank) {
      const bool was_lost = team->lost[rank] == static_cast<uint8_t>(Loss::service);
      if (!was_lost || team->spec.members[rank].address != address) continue;
      core_.observer.on_member_lost(team->spec.client, team->spec.context, rank, Loss::connection);
    }
  }
}

// What the others are told of a member, as a status, and what that says.
offpath_status_t obituary_of(Loss how) {
  if (how == Loss::process) return OFFPATH_ERR_PEER_LOST;
  if (how == Loss::host) return OFFPATH_ERR_NO_SERVICE;
  return how == Loss::silence ? OFFPATH_ERR_SERVICE_LOST : OFFPATH_ERR_NOT_STARTED;
}

Loss loss_of(int32_t obituary) {
  if (obituary == OFFPATH_ERR_PEER_LOST) return Loss::process;
  if (obituary == OFFPATH_ERR_NO_SERVICE) return Loss::host;
  return obituary == OFFPATH_ERR_SERVICE_LOST ? Loss::silence : Loss::service;
}

void Peers::tell_loss(const Team& team, uint32_t rank, Loss how) {
  if (team.lost[rank] != 0) return;
  if (how == Loss::service && is_given_up(team, rank)) how = Loss::silence;
  if (how == Loss::host) how = Loss::service;
  core_.observer.on_member_lost(team.spec.client, team.spec.context, rank, how);
}

bool Peers::progress() {
  if (unreachable_.empty()) return false;
  std::set<std::vector<uint8_t>> addresses;
  for (const auto& [team, rank] : std::exchange(unreachable_, {})) {
    if (team == nullptr || team->lost[rank] != 0) continue;
    lose_member(*team, rank, Loss::service);
    addresses.insert(team->spec.members[rank].address);
  }
  for (const auto& address : addresses) seek(address);
  runner_.settle();
  return true;
}

void Peers::lose_member(Team& team, uint32_t rank, Loss how) {
  const bool process = how == Loss::process;
  tell_loss(team, rank, how);
  // What its own service says of it stands, whatever others still say: it is no connection that could be made again.
  if (team.lost[rank] != static_cast<uint8_t>(Loss::host)) team.lost[rank] = static_cast<uint8_t>(how);
  team.broken = true;
  team.dead |= process;
  for (const auto& [key, operation] : team.operations) {
    // After a service is lost no member begins another collective of the team, so what waits for one of the others may
    // wait for something that never comes.
    const bool hopeless = !process && !key.is_request();
    if (hopeless || needed_members(*operation)[rank] != 0) fail_for_loss(*operation, rank);
  }
  for (Room* room : rooms_) room->on_lost(team, rank);
}

void Peers::give_up(Team& team) {
  team.lost[team.spec.rank] = static_cast<uint8_t>(Loss::process);
  team.broken = team.dead = true;
  for (const auto& [key, operation] : team.operations) fail_for_loss(*operation, team.spec.rank);
}

std::vector<uint8_t> Peers::needed_members(const Operation& operation) const {
  std::vector<uint8_t> needed(operation.team->spec.members.size(), 0);
  if (operation.part != Part::collective) needed[operation.key.peer] = 1;
  for (size_t i = 0; i < operation.steps.size(); ++i) {
    const Step& step = operation.graph.steps[i];
    if (operation.steps[i].done) continue;
    const bool of_one = step.kind == StepKind::pull || step.kind == StepKind::fetch || step.kind == StepKind::ending;
    if (of_one) needed[step.peer] = 1;
    if (step.kind != StepKind::multicast) continue;
    for (const uint32_t member : step.multicast->members) needed[member] = member != operation.team->spec.rank ? 1 : 0;
  }
  for (size_t i = 0; i < operation.exports.size(); ++i) {
    if (operation.exports[i].state != ExportState::resolved) needed[operation.graph.exports[i].peer] = 1;
  }
  return needed;
}

void Peers::fail_for_loss(Operation& operation, uint32_t rank) {
  if (operation.over) return;
  Team& team = *operation.team;
  Message lost = about(Kind::lost, team, operation.key.channel, operation.key.number, rank, 0);
  lost.status = obituary_of(team.dead ? Loss::process : static_cast<Loss>(team.lost[rank]));
  std::vector<uint8_t> needed = needed_members(operation);
  Arrivals::add_waiting(operation, needed);
  for (lost.to = 0; lost.to < needed.size(); ++lost.to) {
    const bool reachable = lost.to != team.spec.rank && lost.to != rank && team.lost[lost.to] == 0;
    // Where a service is lost each that hears of it gives the operation up, too, and passes it on.
    const bool is_next = team.dead || team.spec.members[lost.to].local || team.peer(lost.to) >= 0;
    if (reachable && is_next && needed[lost.to] != 0) send(team, lost.to, lost);
  }
  // The result is complete. Who wants to know whether those of the others are sees that the team is broken.
  const bool complete = operation.graph.ends != graph::Ends::alone && operation.arrived && operation.status.ok();
  if (complete && !team.dead && operation.shortfall().ok()) return runner_.end(operation, {});
  const bool begun = team.dead || operation.part != Part::collective || operation.has_begun(rank);
  runner_.end(operation, begun
                             ? Status::error(OFFPATH_ERR_PEER_LOST, "member %u was lost during the operation", rank)
                             : Status::error(OFFPATH_ERR_NOT_STARTED, "member %u was lost before the operation", rank));
}

bool Peers::pass_loss_on(Team& team, uint32_t to, uint64_t number) {
  for (uint32_t rank = 0; !team.dead && rank < team.lost.size(); ++rank) {
    if (team.lost[rank] == 0 || rank == to) continue;
    Message lost = about(Kind::lost, team, wire::Channel::collectives, number, rank, to);
    lost.status = obituary_of(static_cast<Loss>(team.lost[rank]));
    send(team, to, lost);
    return true;
  }
  return false;
}

void Peers::handle_lost(const Message& message) {
  const auto team = core_.find_team(message.team, message.to);
  if (team == nullptr || message.from >= team->spec.members.size() || message.from == team->spec.rank) return;
  const Loss how = loss_of(message.status);
  const bool is_sought = how == Loss::service && team->lost[message.from] == 0 && team->peer(message.from) >= 0;
  lose_member(*team, message.from, how);
  if (is_sought) seek(team->spec.members[message.from].address);
  // The sender gave this operation up, so it will not complete its part.
  if (message.channel != wire::Channel::collectives) return;
  const auto operation = team->operations.find({.number = message.number});
  if (operation != team->operations.end()) fail_for_loss(*operation->second, message.from);
}

}  // namespace offpath::engine
