// SPDX-License-Identifier: BSD-3-Clause
// Short blocks of collectives that leave for other nodes as soon as they are there (docs/design/0013-push.md). A member
// has at most Exchange::kMaxUnanswered of them unanswered at another one, so what lies there unused is bounded; what goes beyond,
// or to a member that was not heard of yet, waits until it is asked for, like any block.
#include "engine/carriers/sender.hpp"
#include "engine/rooms/imports.hpp"
#include "engine/rooms/peers.hpp"

namespace offpath::engine {

using base::Status;
using wire::Channel;
using wire::Kind;
using wire::Message;

size_t Peers::unconfirmed() const {
  size_t count = 0;
  const auto add = [&](const Team& team) {
    for (const BlockKey& block : team.exchange.unanswered()) {
      const int64_t peer = team.peer(block.member);
      count += team.lost[block.member] == 0 && !sender_.is_lost(static_cast<fabric::Peer>(peer)) ? 1 : 0;
    }
  };
  for (const auto& [key, team] : core_.teams) add(*team);
  for (const auto& [key, team] : departed_) add(*team);
  return count;
}

void Imports::handle_push(const Message& message, fabric::Bytes payload) {
  const auto team = core_.find_team(message.team, message.to);
  if (team == nullptr) return peers_.handle_absent({message.team, message.to}, message, payload);
  const bool known = message.from < team->spec.members.size() && !team->spec.members[message.from].local;
  const bool collective = message.channel == Channel::collectives && message.number != wire::kNoOperation;
  if (!known || !collective || payload.size() > config_.pushed_bytes) {
    return core_.refuse_message("a block that nobody can have pushed");
  }
  const BlockKey block{message.number, message.from, message.tag};
  const auto found = team->operations.find({.number = message.number});
  if (found != team->operations.end()) {
    Operation& operation = *found->second;
    operation.note_begun(message.from);
    const auto asked = operation.asked.find({message.from, message.tag});
    if (asked != operation.asked.end() && pulls_.contains(asked->second)) return place_pushed(asked->second, payload);
  } else if (message.number < team->next_sequence) {
    return acknowledge(*team, block);
  }
  if (!team->exchange.keep(block, payload)) core_.refuse_message("a pushed block too many");
}

void Imports::on_absent(Team& team, const Message& message) {
  if (message.from >= team.spec.members.size()) return core_.refuse_message("a member that the team does not have");
  if (!team.spec.members[message.from].local) acknowledge(team, {message.number, message.from, message.tag});
}

bool Imports::take_arrived(const Operation& operation, uint64_t pull_id) {
  Team& team = *operation.team;
  const Step& step = operation.graph.steps[pulls_.at(pull_id).step];
  const BlockKey block{operation.key.number, step.peer, step.tag};
  const auto data = team.exchange.take(block);
  if (!data) return false;
  acknowledge(team, block);
  place_pushed(pull_id, *data);
  return true;
}

void Imports::place_pushed(uint64_t pull_id, fabric::Bytes data) {
  Pull& pull = pulls_.at(pull_id);
  pull.pushed = true;
  if (data.size() > pull.limit) {
    return finish_pull(pull_id,
                       Status::error(OFFPATH_ERR_TRUNCATED, "a block of %zu bytes where %llu were expected",
                                     data.size(), static_cast<unsigned long long>(pull.limit)),
                       Cause::refused);
  }
  pull.total = data.size();
  place(pull_id, 0, data);
}

void Imports::drop_arrived(Team& team, uint64_t from, uint64_t end) {
  team.exchange.forget(from, end, [&](const BlockKey& block) { acknowledge(team, block); });
}

void Imports::acknowledge(Team& team, const BlockKey& block) {
  const fabric::Peer peer = peers_.peer_of(team, block.member);
  if (peer == UINT32_MAX) return;
  const Message done =
      about(Kind::done, team, Channel::collectives, block.number, block.member, team.spec.rank, block.tag);
  sender_.say_later(peer, done, Exchange::kMaxUnanswered / 2);
}

}  // namespace offpath::engine
