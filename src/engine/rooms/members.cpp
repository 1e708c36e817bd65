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
    case Kind::gone:
      return handle_gone(message);
    case Kind::lost:
      return handle_lost(message);
    default:
      return handle_sign_of_life(message, payload);
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
