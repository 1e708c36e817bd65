// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.hpp"
#include "engine/state.hpp"
#include "wire/batch.hpp"

namespace offpath::engine {

using base::Status;
using wire::Kind;
using wire::Message;

void Engine::State::receive(fabric::Bytes header, fabric::Bytes payload) {
  const auto message = wire::decode(header);
  if (!message.ok()) return refuse_message(message.status().text());
  if (message.value().kind == Kind::batch) return receive_batch(payload);
  receive_one(message.value(), payload);
}

void Engine::State::receive_batch(fabric::Bytes entries) {
  if (entries.empty()) return refuse_message("an empty batch");
  while (const auto entry = wire::take_entry(entries)) {
    const auto message = wire::decode(entry->header);
    if (message.ok()) receive_one(message.value(), entry->payload);
    if (!message.ok()) refuse_message(message.status().text());
  }
  if (!entries.empty()) refuse_message("a batch is cut short");
}

void Engine::State::receive_one(const Message& message, fabric::Bytes payload) {
  if (message.kind == Kind::data) {
    if (check_data(message, payload.size()) != nullptr) place(message.pull_id, message.offset, payload);
  } else if (payload.empty()) {
    handle(message);
  } else {
    refuse_message("a payload where none belongs");
  }
  settle();
}

void Engine::State::refuse_message(const char* why) {
  if (++refused == 1) base::log_write(base::LogLevel::warn, "refused a message: %s", why);
}

void Engine::State::handle(const Message& message) {
  switch (message.kind) {
    case Kind::hello:
      return;  // it has opened the connection, that was its purpose
    case Kind::pull:
      return handle_pull(message);
    case Kind::done:
      return handle_done(message);
    case Kind::fail:
      return handle_fail(message);
    case Kind::lost:
      return handle_lost(message);
    case Kind::data:
    case Kind::batch:
      refuse_message("only the fabric carries data and batches, and batches no batches");
  }
}

std::shared_ptr<Team> Engine::State::find_team(const wire::TeamId& id, uint32_t rank) {
  const auto it = teams.find({id, rank});
  return it == teams.end() ? nullptr : it->second;
}

void Engine::State::handle_pull(const Message& message) {
  const auto team = find_team(message.team, message.from);
  if (team == nullptr) return keep_early(message);
  if (message.to >= team->spec.members.size()) return refuse_message("a member that the team does not have");
  const auto operation = team->operations.find(message.sequence);
  if (operation != team->operations.end()) return serve(*operation->second, message);
  if (message.sequence >= team->next_sequence && team->parked.size() < config.parked_limit) {
    team->parked.emplace(message.sequence, message);
    return;
  }
  // An operation that ended without a loss had all its exports taken: there was none for this pull.
  const bool ended_well = message.sequence < team->next_sequence && !team->broken;
  if (ended_well) return answer_empty(*team, message.to, message.pull_id);
  refuse_pull(*team, message.to, message.pull_id, OFFPATH_ERR_NOT_STARTED);
}

void Engine::State::keep_early(const Message& message) {
  const TeamKey key{message.team, message.from};
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
  if (!early.contains(key)) early_order.push_back(key);
  ++early_count;
  early[key].push_back(message);
}

void Engine::State::refuse_pull(Team& team, uint32_t rank, uint64_t pull_id, offpath_status_t status) {
  Message fail;
  fail.kind = Kind::fail;
  fail.pull_id = pull_id;
  fail.status = status;
  send(team, rank, fail);
}

void Engine::State::answer_empty(Team& team, uint32_t rank, uint64_t pull_id) {
  const Member& member = team.spec.members[rank];
  if (member.local) return neighbours.offer(member.worker, pull_id, nullptr, 0, 0);
  Message empty;
  empty.kind = Kind::data;
  empty.pull_id = pull_id;
  send(team, rank, empty);
}

// A member asks for its block of an operation that is posted here.
void Engine::State::serve(Operation& operation, const Message& message) {
  operation.begun.insert(message.to);
  const uint32_t index = operation.graph.find_export(message.to, message.tag);
  // Nothing is sent to that member, although it would take something.
  if (index == kNoStep) return answer_empty(*operation.team, message.to, message.pull_id);
  ExportProgress& progress = operation.exports[index];
  if (progress.state != ExportState::open) return;  // asked before
  progress.state = ExportState::requested;
  progress.pull_id = message.pull_id;
  progress.limit = message.bytes;
  const uint32_t after = operation.graph.exports[index].after;
  if (after == kNoStep || operation.steps[after].done) return hand_out(operation, index);
  progress.next_waiting = std::exchange(operation.steps[after].first_waiting, index);
}

// Refusals come here too, and not earlier: what waits until the export was taken may overwrite what the step before it
// has written.
void Engine::State::hand_out(Operation& operation, uint32_t index) {
  const Export& block = operation.graph.exports[index];
  ExportProgress& progress = operation.exports[index];
  Team& team = *operation.team;
  Location source;
  offpath_status_t refusal = OFFPATH_OK;
  if (block.after != kNoStep && operation.steps[block.after].failed) {
    refusal = operation.status.code();
  } else if (block.bytes > progress.limit) {
    refusal = OFFPATH_ERR_TRUNCATED;
  } else if (block.bytes == 0) {
    answer_empty(team, block.peer, progress.pull_id);
    return resolve_export(operation, index, 0);
  } else if (const Status status = operation.resolve(block.place, source); !status.ok()) {
    operation.note_failure(status);
    refusal = status.code();
  }
  if (refusal != OFFPATH_OK) {
    refuse_pull(team, block.peer, progress.pull_id, refusal);
    return resolve_export(operation, index, 0);
  }
  progress.state = ExportState::sending;
  const Member& member = team.spec.members[block.peer];
  if (member.local) {
    return neighbours.offer(member.worker, progress.pull_id, std::move(source.memory), source.address, block.bytes);
  }
  const fabric::Peer peer = peer_of(team, block.peer);
  if (peer == UINT32_MAX) return;
  progress.stream = next_id++;
  streams.emplace(progress.stream,
                  Stream{&operation, index, peer, progress.pull_id, std::move(source), block.bytes, 0, 0});
}

void Engine::on_neighbour_offer(uint64_t pull_id, std::shared_ptr<memory::Memory> memory, uint64_t address,
                                uint64_t bytes) {
  State& s = *state_;
  const auto it = s.pulls.find(pull_id);
  if (it == s.pulls.end()) return;
  const Pull& pull = it->second;
  Operation& operation = *pull.operation;
  operation.begun.insert(operation.graph.steps[pull.step].peer);
  if (bytes > pull.limit) return s.refuse_message("an offer of more than was asked for");
  if (bytes == 0) {
    s.finish_pull(pull_id, {}, State::Cause::complete);
  } else {
    s.local.push_back({&operation, pull.step, pull_id, {std::move(memory), address}, {}, pull.target, bytes, 0});
  }
  s.settle();
}

void Engine::State::handle_done(const Message& message) {
  const auto team = find_team(message.team, message.from);
  if (team == nullptr || message.to >= team->spec.members.size()) return;
  const auto found = team->operations.find(message.sequence);
  if (found == team->operations.end()) return;
  Operation& operation = *found->second;
  operation.begun.insert(message.to);
  const uint32_t index = operation.graph.find_export(message.to, message.tag);
  if (index == kNoStep || operation.exports[index].state != ExportState::sending) return;
  // A neighbour that read our memory itself is the only one to know that it could not.
  if (message.status == OFFPATH_ERR_MEMORY_FAULT && team->spec.members[message.to].local) {
    operation.note_failure(Status::error(OFFPATH_ERR_MEMORY_FAULT, "member %u could not copy the block", message.to));
  }
  resolve_export(operation, index, message.status == OFFPATH_OK ? operation.graph.exports[index].bytes : 0);
}

void Engine::State::handle_fail(const Message& message) {
  const auto it = pulls.find(message.pull_id);
  if (it == pulls.end()) return;
  const auto code = static_cast<offpath_status_t>(message.status < 0 ? message.status : OFFPATH_ERR_INTERNAL);
  Operation& operation = *it->second.operation;
  const uint32_t peer = operation.graph.steps[it->second.step].peer;
  operation.begun.insert(peer);
  finish_pull(message.pull_id,
              Status::error(code, "member %u cannot send its block: %s", peer, offpath_status_string(code)),
              Cause::refused);
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
