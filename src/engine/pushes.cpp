// SPDX-License-Identifier: BSD-3-Clause
// Short blocks of collectives that leave for other nodes as soon as they are there (docs/design/0013-push.md). A member
// has at most Exchange::kMaxUnanswered of them unanswered at another one, so what lies there unused is bounded; what goes beyond,
// or to a member that was not heard of yet, waits until it is asked for, like any block.
#include "engine/state.hpp"

namespace offpath::engine {

using base::Status;
using wire::Channel;
using wire::Kind;
using wire::Message;

// ---- sender ---------------------------------------------------------------------------------------------------

bool Engine::State::may_push(const Operation& operation, const Export& block) const {
  const bool elsewhere = !operation.team->spec.members[block.peer].local;
  // With more to follow the receiver must say first what it takes in all.
  const bool is_last = block.rest <= block.bytes;
  const bool is_short = config.pushed_bytes > 0 && block.bytes <= config.pushed_bytes;
  return operation.part == Part::collective && elsewhere && is_short && is_last;
}

void Engine::State::push_short_blocks(Operation& operation) {
  for (uint32_t i = 0; i < operation.exports.size(); ++i) {
    const bool open = operation.exports[i].state == ExportState::open;
    if (open && may_push(operation, operation.graph.exports[i])) hand_out_after_step(operation, i);
  }
}

// It is copied, so its memory is free at once, and to the operation it is as if it were taken. Failures are for those
// who ask: they learn of them by their pull's id.
bool Engine::State::push(Operation& operation, uint32_t index) {
  const Export& block = operation.graph.exports[index];
  ExportProgress& progress = operation.exports[index];
  const bool open = progress.state == ExportState::open || progress.state == ExportState::requested;
  const bool failed = block.after != kNoStep && operation.steps[block.after].failed;
  if (!open || failed || !progress.pushable || !may_push_now(operation, index)) return false;
  const uint64_t bytes = operation.bytes_of(index);
  Location source;
  if (bytes > 0 && !operation.resolve(block.place, source).ok()) return false;
  const uint8_t* there = bytes > 0 ? source.memory->view(source.address, bytes) : nullptr;
  if (bytes == 0 || there != nullptr) return emit_push(operation, index, there);
  Chunk* chunk = chunks.take_to_send();
  if (chunk == nullptr) return false;
  progress.state = ExportState::reading;
  const memory::Ticket ticket = next_ticket();
  when_done(operation, source.memory->read(chunk->memory.get(), source.address, bytes, ticket), ticket,
            [this, index, chunk](Operation* op, const Status& status) {
              if (op != nullptr && op->exports[index].state == ExportState::reading) {
                ExportProgress& read = op->exports[index];
                read.state = read.pull_id == 0 ? ExportState::open : ExportState::requested;
                read.pushable = status.ok() && may_push_now(*op, index) && emit_push(*op, index, chunk->memory.get());
              }
              chunks.give_back(chunk);
              if (op != nullptr && op->exports[index].state == ExportState::requested) hand_out(*op, index);
            });
  return true;
}

// Unless it was asked for, there are limits to what may lie there.
bool Engine::State::may_push_now(const Operation& operation, uint32_t index) {
  const Export& block = operation.graph.exports[index];
  const ExportProgress& progress = operation.exports[index];
  if (!may_push(operation, block)) return false;
  if (progress.state == ExportState::requested) return block.bytes <= progress.limit;
  return operation.team->exchange.may_push(block.peer);
}

bool Engine::State::emit_push(Operation& operation, uint32_t index, const uint8_t* data) {
  const Export& block = operation.graph.exports[index];
  Team& team = *operation.team;
  const uint64_t bytes = operation.bytes_of(index);
  const fabric::Peer peer = peer_of(team, block.peer);
  if (peer == UINT32_MAX) return false;
  const Message message =
      about(Kind::push, team, operation.key.channel, operation.key.number, team.spec.rank, block.peer, block.tag);
  uint8_t* copy = sender.add_entry(peer, message, bytes);
  if (copy == nullptr) return false;
  std::copy_n(data, bytes, copy);
  note_moved(operation, bytes);
  traffic.sent_bytes += bytes;
  const bool asked = operation.exports[index].state == ExportState::requested;
  if (!asked) team.exchange.note_pushed({message.number, block.peer, block.tag});
  resolve_export(operation, index, bytes);
  return true;
}

bool Engine::State::settle_push(Team& team, const Message& message) {
  if (message.channel != Channel::collectives) return false;
  if (!team.exchange.answer({message.number, message.to, message.tag})) return false;
  const auto operation = team.operations.find({.number = message.number});
  if (operation != team.operations.end()) operation->second->begun.insert(message.to);
  return true;
}

void Engine::State::settle_departed_push(const Message& message) {
  const auto team = departed.find({message.team, message.from});
  if (team != departed.end()) settle_push(*team->second, message);
}

size_t Engine::unconfirmed() const {
  size_t count = 0;
  const auto add = [&](const Team& team) {
    for (const BlockKey& block : team.exchange.unanswered()) {
      const int64_t peer = team.peers[block.member];
      count += team.lost[block.member] == 0 && !state_->sender.is_lost(static_cast<fabric::Peer>(peer)) ? 1 : 0;
    }
  };
  for (const auto& [key, team] : state_->teams) add(*team);
  for (const auto& [key, team] : state_->departed) add(*team);
  return count;
}

// ---- receiver -------------------------------------------------------------------------------------------------

void Engine::State::handle_push(const Message& message, fabric::Bytes payload) {
  const auto team = find_team(message.team, message.to);
  if (team == nullptr) return handle_absent({message.team, message.to}, message, payload);
  const bool known = message.from < team->spec.members.size() && !team->spec.members[message.from].local;
  const bool collective = message.channel == Channel::collectives && message.number != wire::kNoOperation;
  if (!known || !collective || payload.size() > config.pushed_bytes) {
    return refuse_message("a block that nobody can have pushed");
  }
  const BlockKey block{message.number, message.from, message.tag};
  const auto found = team->operations.find({.number = message.number});
  if (found != team->operations.end()) {
    Operation& operation = *found->second;
    operation.begun.insert(message.from);
    const auto asked = operation.asked.find({message.from, message.tag});
    if (asked != operation.asked.end() && pulls.contains(asked->second)) return place_pushed(asked->second, payload);
  } else if (message.number < team->next_sequence) {
    return acknowledge(*team, block);
  }
  if (!team->exchange.keep(block, payload)) refuse_message("a pushed block too many");
}

bool Engine::State::take_arrived(const Operation& operation, uint64_t pull_id) {
  Team& team = *operation.team;
  const Step& step = operation.graph.steps[pulls.at(pull_id).step];
  const BlockKey block{operation.key.number, step.peer, step.tag};
  const auto data = team.exchange.take(block);
  if (!data) return false;
  acknowledge(team, block);
  place_pushed(pull_id, *data);
  return true;
}

void Engine::State::place_pushed(uint64_t pull_id, fabric::Bytes data) {
  Pull& pull = pulls.at(pull_id);
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

void Engine::State::drop_arrived(Team& team, uint64_t from, uint64_t end) {
  team.exchange.forget(from, end, [&](const BlockKey& block) { acknowledge(team, block); });
}

void Engine::State::acknowledge(Team& team, const BlockKey& block) {
  const fabric::Peer peer = peer_of(team, block.member);
  if (peer == UINT32_MAX) return;
  const Message done =
      about(Kind::done, team, Channel::collectives, block.number, block.member, team.spec.rank, block.tag);
  sender.say_later(peer, done, Exchange::kMaxUnanswered / 2);
}

bool Engine::senders_wait() const { return state_->sender.owes(); }

void Engine::tell_senders() { state_->sender.say_owed(); }

}  // namespace offpath::engine
