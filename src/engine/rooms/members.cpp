// SPDX-License-Identifier: BSD-3-Clause
// How members of a team are reached, wherever they are served.
#include "base/log.hpp"
#include "engine/carriers/sender.hpp"
#include "engine/rooms/peers.hpp"

namespace offpath::engine {

using wire::Kind;
using wire::Message;

void Peers::on_message(const Message& message, fabric::Bytes payload) {
  switch (message.kind) {
    case Kind::hello:
      return handle_hello(message);
    case Kind::lost:
      return handle_lost(message);
    default:
      return handle_sign_of_life(message, payload);
  }
}

// The sender has opened the connection, to all members here. A team that is created here later hears of that member when it
// asks for something. Where a connection was made again, a team may have lost here whom it first speaks to there.
void Peers::handle_hello(const Message& message) {
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
  }
}

// The first operation of a team connects it, so that each member notices the death of each other one, and knows that
// there is somebody to push to. One word to each other worker.
void Peers::say_hello(Team& team) {
  if (team.said_hello) return;
  team.said_hello = true;
  Message hello = about(Kind::hello, team, wire::Channel::collectives, 0, team.spec.rank, 0);
  const auto size = static_cast<uint32_t>(team.spec.members.size());
  std::vector<uint8_t> told(team.spec.members.workers().size());
  for (uint32_t i = 1; i < size; ++i) {
    hello.to = (team.spec.rank + i) % size;
    const uint32_t worker = team.spec.members.worker_of(hello.to);
    if (team.spec.members[hello.to].local || std::exchange(told[worker], 1) != 0) continue;
    send(team, hello.to, hello);
  }
}

void Peers::send(Team& team, uint32_t rank, const Message& message, fabric::Bytes payload) {
  if (team.spec.members[rank].local) return send_near(team.spec.members[rank].worker, message, payload);
  const fabric::Peer peer = peer_of(team, rank);
  if (peer == UINT32_MAX) return;
  if (payload.empty()) return sender_.say(peer, message);
  sender_.say_with(peer, message, payload);
}

fabric::Peer Peers::peer_of(Team& team, uint32_t rank) {
  int64_t& peer = team.peers[team.spec.members.worker_of(rank)];
  if (peer < 0) {
    const auto connected = fabric_.connect(team.spec.members[rank].address);
    if (connected.ok()) peer = connected.value();
    if (!connected.ok()) base::log_write(base::LogLevel::warn, "%s", connected.status().text());
  }
  if (peer >= 0 && !sender_.is_lost(static_cast<fabric::Peer>(peer))) return static_cast<fabric::Peer>(peer);
  if (team.lost[rank] == 0) unreachable_.emplace_back(core_.find_team(team.spec.id, team.spec.rank), rank);
  return UINT32_MAX;
}

}  // namespace offpath::engine
