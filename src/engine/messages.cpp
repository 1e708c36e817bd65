// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.hpp"
#include "engine/multicasts.hpp"
#include "wire/batch.hpp"

namespace offpath::engine {

using base::Status;
using wire::Channel;
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
  payload_of(message.kind) == Payload::chunk ? imports->on_message(message, payload) : dispatch(message, payload);
  settle();
}

void Engine::State::refuse_message(const char* why) {
  if (++refused == 1) base::log_write(base::LogLevel::warn, "refused a message: %s", why);
}

void Engine::State::dispatch(const Message& message, fabric::Bytes payload) {
  switch (message.kind) {
#define OFFPATH_MESSAGE(kind, room, holds)                                                                          \
  case Kind::kind:                                                                                                  \
    if (Payload::holds == Payload::chunk) return refuse_message("only the fabric carries data");                    \
    if (Payload::holds == Payload::none && !payload.empty()) return refuse_message("a payload where none belongs"); \
    return room->on_message(message, payload);
#include "engine/rooms.def"
    case Kind::batch:
      refuse_message("only the fabric carries batches, and batches no batches");
  }
}

class Engine::State::Rest : public Room {
 public:
  explicit Rest(State& state) : s_(state) {}

  void on_message(const Message& message, fabric::Bytes payload) override {
    switch (message.kind) {
      case Kind::hello:
        return s_.handle_hello(message);
      case Kind::pull:
        return s_.handle_pull(message);
      case Kind::push:
        return s_.handle_push(message, payload);
      case Kind::done:
        return s_.handle_done(message);
      case Kind::fail:
        return s_.handle_fail(message);
      case Kind::lost:
        return s_.handle_lost(message);
      case Kind::request:
        return s_.handle_request(message, payload);
      case Kind::reply:
        return s_.handle_reply(message, payload);
      case Kind::data:
        if (s_.check_data(message, payload.size()) != nullptr) s_.place(message.pull_id, message.offset, payload);
        return;
      case Kind::coded:
        if (s_.check_data(message, payload.size()) != nullptr) s_.decode(message, payload, nullptr);
        return;
      default:
        return s_.handle_sign_of_life(message, payload);
    }
  }

 private:
  State& s_;
};

void Engine::State::furnish() {
  multicasts = std::make_shared<Multicasts>(*this);
  peers = imports = calls = exports = std::make_shared<Rest>(*this);
}

std::shared_ptr<Team> Engine::State::find_team(const wire::TeamId& id, uint32_t rank) {
  const auto it = teams.find({id, rank});
  return it == teams.end() ? nullptr : it->second;
}

// Which operation a pull, or an answer to one, is about at the member that has the block.
static OperationKey key_of(const Message& message) {
  return {message.channel, message.number, message.channel == Channel::collectives ? 0 : message.to};
}

// The sender has opened the connection. A team that is created here later hears of that member when it asks for
// something.
void Engine::State::handle_hello(const Message& message) {
  const auto team = find_team(message.team, message.to);
  if (team == nullptr) return;
  if (message.from >= team->spec.members.size()) return refuse_message("a member that the team does not have");
  team->exchange.note_present(message.from);
}

void Engine::State::handle_pull(const Message& message) {
  const auto team = find_team(message.team, message.from);
  if (team == nullptr) return handle_absent({message.team, message.from}, message, {});
  if (message.to >= team->spec.members.size()) return refuse_message("a member that the team does not have");
  team->exchange.note_present(message.to);
  if (settle_push(*team, message)) return;  // the block was pushed before the pull came
  const OperationKey key = key_of(message);
  const auto operation = team->operations.find(key);
  const bool is_here = operation != team->operations.end();
  if (message.tag == kEndingTag && !key.is_request())
    return answer_ending(*team, is_here ? operation->second : nullptr, message);
  if (is_here) return serve(*operation->second, message);
  const bool to_come = is_to_come(*team, key);
  if (to_come && team->exchange.pulls_waiting() < config.parked_limit) return team->exchange.ask(key, message);
  if (key.is_request()) return refuse_pull(*team, message.to, message.pull_id, OFFPATH_ERR_STATE);
  // A collective that ended without a loss has had all its blocks taken or pushed: it had none for this member.
  if (!to_come && !team->broken) return answer_empty(*team, message.to, message.pull_id);
  refuse_pull(*team, message.to, message.pull_id, OFFPATH_ERR_NOT_STARTED);
}

// Whether that operation, which is not here, may still be posted. A member knows of its own requests before anybody
// can pull their blocks.
bool Engine::State::is_to_come(const Team& team, const OperationKey& key) const {
  if (!key.is_request()) return key.number >= team.next_sequence;
  if (key.channel != Channel::answers || team.lost[key.peer] != 0) return false;
  const RequestPeer* peer = team.requests.empty() ? nullptr : team.requests[key.peer].get();
  return peer == nullptr || key.number >= peer->next_asked || peer->deferred.contains(key.number);
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
  if (member.local) return offer_near(member.worker, pull_id, {}, 0);
  Message empty;
  empty.kind = Kind::data;
  empty.pull_id = pull_id;
  send(team, rank, empty);
}

// A member asks for its block of an operation that was posted here.
void Engine::State::serve(Operation& operation, const Message& message) {
  operation.begun.insert(message.to);
  const uint32_t index = operation.graph.find_export(message.to, message.tag);
  // Our member sends nothing to that one, which would take something.
  if (index == kNoStep) return answer_empty(*operation.team, message.to, message.pull_id);
  ExportProgress& progress = operation.exports[index];
  const bool reading = progress.state == ExportState::reading && progress.pull_id == 0;
  if (progress.state != ExportState::open && !reading) {  // the block was taken or is on its way: refused
    return refuse_pull(*operation.team, message.to, message.pull_id, OFFPATH_ERR_STATE);
  }
  progress.pull_id = message.pull_id;
  progress.limit = message.bytes;
  progress.readable = message.codecs;
  if (reading) return;  // the end of reading goes on with it
  progress.state = ExportState::requested;
  hand_out_after_step(operation, index);
}

void Engine::State::hand_out_after_step(Operation& operation, uint32_t index) {
  ExportProgress& progress = operation.exports[index];
  const uint32_t after = operation.graph.exports[index].after;
  if (after == kNoStep || operation.steps[after].done) return hand_out(operation, index);
  if (!std::exchange(progress.waits, true)) {
    progress.next_waiting = std::exchange(operation.steps[after].first_waiting, index);
  }
}

// A block is refused here and not earlier: steps that wait until the export was taken may overwrite what the step
// before it has written.
void Engine::State::hand_out(Operation& operation, uint32_t index) {
  const Export& block = operation.graph.exports[index];
  const ExportProgress& progress = operation.exports[index];
  const bool asked = progress.state == ExportState::requested;
  if (!asked && progress.state != ExportState::open) return;
  const bool failed = block.after != kNoStep && operation.steps[block.after].failed;
  if (failed && asked) return refuse_block(operation, index, operation.status);
  if (failed) return;  // a later pull is refused
  if (asked && std::max(block.bytes, block.rest) > progress.limit) {
    refuse_pull(*operation.team, block.peer, progress.pull_id, OFFPATH_ERR_TRUNCATED);
    return resolve_export(operation, index, 0);
  }
  Location source;
  if (operation.bytes_of(index) > 0) {
    const Status status = operation.resolve(block.place, source);
    if (!status.ok() && asked) return refuse_block(operation, index, status);
    if (!status.ok()) return;  // a later pull is refused
  }
  for (const auto& carrier : carriers) {
    if (carrier->take(operation, index, source, asked)) return;
  }
}

// The operation fails, and the member that has asked for the block is told.
void Engine::State::refuse_block(Operation& operation, uint32_t index, const Status& status) {
  operation.note_failure(status);
  refuse_pull(*operation.team, operation.graph.exports[index].peer, operation.exports[index].pull_id, status.code());
  resolve_export(operation, index, 0);
}

void Engine::State::handle_done(const Message& message) {
  const auto team = find_team(message.team, message.from);
  if (team == nullptr) return settle_departed_push(message);
  if (message.to >= team->spec.members.size() || settle_push(*team, message)) return;
  const auto found = team->operations.find(key_of(message));
  if (found == team->operations.end()) return;
  Operation& operation = *found->second;
  operation.begun.insert(message.to);
  const uint32_t index = operation.graph.find_export(message.to, message.tag);
  if (index == kNoStep || operation.exports[index].state != ExportState::sending) return;
  // A member of the same service reads our memory itself, so only it knows that it could not.
  if (message.status == OFFPATH_ERR_MEMORY_FAULT && team->spec.members[message.to].local) {
    operation.note_failure(Status::error(OFFPATH_ERR_MEMORY_FAULT, "member %u could not copy the block", message.to));
  }
  if (message.status == OFFPATH_OK) operation.exports[index].decode_ns = message.decode_ns;
  resolve_export(operation, index, message.status == OFFPATH_OK ? operation.graph.exports[index].bytes : 0);
}

void Engine::State::handle_fail(const Message& message) {
  const auto it = pulls.find(message.pull_id);
  if (it == pulls.end()) return;
  const auto code = static_cast<offpath_status_t>(message.status < 0 ? message.status : OFFPATH_ERR_INTERNAL);
  Operation& operation = *it->second.operation;
  const Step& step = operation.graph.steps[it->second.step];
  const uint32_t peer = step.peer;
  if (step.tag != kEndingTag || operation.part != Part::collective) operation.begun.insert(peer);  // else: not yet
  finish_pull(message.pull_id,
              Status::error(code, "member %u cannot send its block: %s", peer, offpath_status_string(code)),
              Cause::refused);
}

void Engine::State::handle_lost(const Message& message) {
  const auto team = find_team(message.team, message.to);
  if (team == nullptr || message.from >= team->spec.members.size() || message.from == team->spec.rank) return;
  lose_member(*team, message.from, loss_of(message.status));
  // The sender gave this operation up, so it will not complete its part.
  if (message.channel != Channel::collectives) return;
  const auto operation = team->operations.find({.number = message.number});
  if (operation != team->operations.end()) fail_for_loss(*operation->second, message.from);
}

}  // namespace offpath::engine
