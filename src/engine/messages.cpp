// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.hpp"
#include "engine/state.hpp"

namespace offpath::engine {

using base::Status;
using wire::Kind;
using wire::Message;

void Engine::on_message(fabric::Bytes header, fabric::Bytes payload) {
  State& s = *state_;
  const auto message = wire::decode(header);
  // An offer names memory of this node: only a neighbour may make one.
  if (!message.ok() || message.value().kind == Kind::offer ||
      (!payload.empty() && message.value().kind != Kind::data)) {
    if (++s.refused == 1) base::log_write(base::LogLevel::warn, "refused a message %s", message.status().text());
    return;
  }
  if (message.value().kind != Kind::data) return s.handle(message.value());
  Pull* pull = s.check_data(message.value(), payload.size());
  if (pull == nullptr) return;
  if (!payload.empty()) {
    const Step& step = pull->operation->graph.steps[pull->step];
    const Status status =
        pull->operation->team->memory->write(step.target + message.value().offset, payload.data(), payload.size());
    if (!status.ok()) return s.finish_pull(message.value().pull_id, status);
  }
  s.chunk_arrived(message.value().pull_id, payload.size());
}

void Engine::State::handle(const Message& message) {
  switch (message.kind) {
    case Kind::hello:
      return;  // it has opened the connection, that was its purpose
    case Kind::pull:
      return handle_pull(message);
    case Kind::offer:
      return handle_offer(message);
    case Kind::done:
      return handle_done(message);
    case Kind::fail:
      return handle_fail(message);
    case Kind::lost:
      return handle_lost(message);
    case Kind::data:
      ++refused;  // data without a fabric payload makes no sense
  }
}

std::shared_ptr<Team> Engine::State::find_team(const wire::TeamId& id, uint32_t rank) {
  const auto it = teams.find({id, rank});
  return it == teams.end() ? nullptr : it->second;
}

fabric::Peer Engine::State::peer_of(Team& team, uint32_t rank) {
  int64_t& peer = team.peers[rank];
  if (peer < 0) {
    const auto connected = fabric.connect(team.spec.members[rank].address);
    if (connected.ok()) peer = connected.value();
    if (!connected.ok()) base::log_write(base::LogLevel::warn, "%s", connected.status().text());
  }
  if (peer >= 0 && !lost_peers.contains(static_cast<fabric::Peer>(peer))) return static_cast<fabric::Peer>(peer);
  if (team.lost[rank] == 0) unreachable.emplace_back(find_team(team.spec.id, team.spec.rank), rank);
  return UINT32_MAX;
}

void Engine::State::send(Team& team, uint32_t rank, const Message& message) {
  if (team.spec.members[rank].local) return neighbours.send(team.spec.members[rank].worker, message);
  const fabric::Peer peer = peer_of(team, rank);
  if (peer == UINT32_MAX) return;
  uint8_t bytes[wire::kMaxMessageBytes];
  const size_t length = wire::encode(message, bytes);
  fabric.send(peer, fabric::Bytes(bytes, length), {}, 0);
}

void Engine::State::handle_pull(const Message& message) {
  const auto team = find_team(message.team, message.from);
  if (team == nullptr) {
    // The oldest go first: pulls for a team that never comes must not keep out those for one that will.
    if (early_count >= config.parked_limit && !early_order.empty()) {
      const auto oldest = early.find(early_order.front());
      early_order.pop_front();
      if (oldest != early.end()) {
        early_count -= oldest->second.size();
        refused += oldest->second.size();
        early.erase(oldest);
      }
    }
    if (!early.contains({message.team, message.from})) early_order.push_back({message.team, message.from});
    ++early_count;
    early[{message.team, message.from}].push_back(message);
    return;
  }
  if (message.to >= team->spec.members.size()) {
    ++refused;
    return;
  }
  const auto operation = team->operations.find(message.sequence);
  if (operation != team->operations.end()) return serve(*operation->second, message);
  if (message.sequence >= team->next_sequence && team->parked.size() < config.parked_limit) {
    team->parked.emplace(message.sequence, message);
    return;
  }
  refuse_pull(*team, message.to, message.pull_id, OFFPATH_ERR_NOT_STARTED);
}

void Engine::State::refuse_pull(Team& team, uint32_t rank, uint64_t pull_id, offpath_status_t status) {
  Message fail;
  fail.kind = Kind::fail;
  fail.pull_id = pull_id;
  fail.status = status;
  send(team, rank, fail);
}

// A member asks for its block of an operation that is posted here.
void Engine::State::serve(Operation& operation, const Message& message) {
  operation.begun.insert(message.to);
  const uint32_t index = operation.graph.find_export(message.to, message.tag);
  if (index == kNoStep) {
    // Nothing is sent to that member, although it would take something: an empty block.
    Message empty;
    empty.kind = operation.team->spec.members[message.to].local ? Kind::offer : Kind::data;
    empty.pull_id = message.pull_id;
    empty.client = operation.team->spec.client;
    return send(*operation.team, message.to, empty);
  }
  const Export& block = operation.graph.exports[index];
  ExportProgress& progress = operation.exports[index];
  if (progress.state != ExportState::open) return;  // asked before
  progress.pull_id = message.pull_id;
  if (block.bytes > message.bytes) {
    refuse_pull(*operation.team, message.to, message.pull_id, OFFPATH_ERR_TRUNCATED);
    resolve_export(operation, index);
    return finish_if_done(operation);
  }
  const bool ready = block.after == kNoStep || operation.step_done[block.after];
  progress.state = ExportState::requested;
  if (ready) hand_out(operation, index);
}

void Engine::State::hand_out(Operation& operation, uint32_t index) {
  const Export& block = operation.graph.exports[index];
  ExportProgress& progress = operation.exports[index];
  progress.state = ExportState::sending;
  if (operation.team->spec.members[block.peer].local) {
    Message offer;
    offer.kind = Kind::offer;
    offer.pull_id = progress.pull_id;
    offer.bytes = block.bytes;
    offer.address = block.address;
    offer.client = operation.team->spec.client;
    return send(*operation.team, block.peer, offer);
  }
  const fabric::Peer peer = peer_of(*operation.team, block.peer);
  if (peer == UINT32_MAX) return;
  Stream stream;
  stream.id = next_id++;
  stream.operation = &operation;
  stream.memory = operation.team->memory;
  stream.export_index = index;
  stream.peer = peer;
  stream.pull_id = progress.pull_id;
  stream.address = block.address;
  stream.bytes = block.bytes;
  streams.emplace(stream.id, std::move(stream));
}

void Engine::State::handle_offer(const Message& message) {
  const auto it = pulls.find(message.pull_id);
  if (it == pulls.end()) return;
  Operation& operation = *it->second.operation;
  const Step& step = operation.graph.steps[it->second.step];
  operation.begun.insert(step.peer);
  std::shared_ptr<memory::Memory> source = neighbours.memory_of(message.client);
  if (source == nullptr || message.bytes > step.bytes) {
    ++refused;
    return;
  }
  if (message.bytes == 0) {
    it->second.total = 0;
    return finish_pull(message.pull_id, {});
  }
  it->second.total = message.bytes;
  copies.push_back({operation.id, it->second.step, message.pull_id, std::move(source), message.address, step.target,
                    message.bytes, 0});
}

void Engine::State::handle_done(const Message& message) {
  const auto team = find_team(message.team, message.from);
  if (team == nullptr || message.to >= team->spec.members.size()) return;
  const auto found = team->operations.find(message.sequence);
  if (found == team->operations.end()) return;
  Operation& operation = *found->second;
  operation.begun.insert(message.to);
  const uint32_t index = operation.graph.find_export(message.to, message.tag);
  if (index == kNoStep || operation.exports[index].state == ExportState::resolved) return;
  resolve_export(operation, index);
  // A neighbour that read our memory itself is the only one to know that it could not.
  if (message.status == OFFPATH_ERR_MEMORY_FAULT && team->spec.members[message.to].local) {
    operation.note_failure(
        Status::error(OFFPATH_ERR_MEMORY_FAULT, "member %u could not copy the block", message.to));
  }
  observer.on_served(team->spec.client, operation.context, message.to, operation.graph.exports[index].bytes,
                     team->spec.members[message.to].local);
  finish_if_done(operation);
}

void Engine::State::handle_fail(const Message& message) {
  const auto it = pulls.find(message.pull_id);
  if (it == pulls.end()) return;
  const auto code = static_cast<offpath_status_t>(message.status < 0 ? message.status : OFFPATH_ERR_INTERNAL);
  const uint32_t peer = it->second.operation->graph.steps[it->second.step].peer;
  it->second.operation->begun.insert(peer);
  finish_pull(message.pull_id,
              Status::error(code, "member %u cannot send its block: %s", peer, offpath_status_string(code)));
}

void Engine::State::handle_lost(const Message& message) {
  const auto team = find_team(message.team, message.to);
  if (team == nullptr || message.from >= team->spec.members.size() || message.from == team->spec.rank) return;
  const bool process = message.status == OFFPATH_ERR_PEER_LOST;
  lose_member(*team, message.from, process);
  if (process) return;
  // Another survivor gave this operation up, so it will not be completed there.
  const auto operation = team->operations.find(message.sequence);
  if (operation != team->operations.end()) fail_for_loss(*operation->second, message.from);
}

}  // namespace offpath::engine
