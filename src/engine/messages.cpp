// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.hpp"
#include "engine/exports.hpp"
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
      case Kind::push:
        return s_.handle_push(message, payload);
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
  exports = std::make_shared<Exports>(*this);
  peers = imports = calls = std::make_shared<Rest>(*this);
}

std::shared_ptr<Team> Engine::State::find_team(const wire::TeamId& id, uint32_t rank) {
  const auto it = teams.find({id, rank});
  return it == teams.end() ? nullptr : it->second;
}

// The sender has opened the connection. A team that is created here later hears of that member when it asks for
// something.
void Engine::State::handle_hello(const Message& message) {
  const auto team = find_team(message.team, message.to);
  if (team == nullptr) return;
  if (message.from >= team->spec.members.size()) return refuse_message("a member that the team does not have");
  team->exchange.note_present(message.from);
}

// Whether that operation, which is not here, may still be posted. A member knows of its own requests before anybody
// can pull their blocks.
bool Engine::State::is_to_come(const Team& team, const OperationKey& key) const {
  if (!key.is_request()) return key.number >= team.next_sequence;
  if (key.channel != Channel::answers || team.lost[key.peer] != 0) return false;
  const RequestPeer* peer = team.requests.empty() ? nullptr : team.requests[key.peer].get();
  return peer == nullptr || key.number >= peer->next_asked || peer->deferred.contains(key.number);
}

void Engine::State::handle_fail(const Message& message) {
  const auto it = pulls.find(message.pull_id);
  if (it == pulls.end()) return;
  const auto code = static_cast<offpath_status_t>(message.status < 0 ? message.status : OFFPATH_ERR_INTERNAL);
  Operation& operation = *it->second.operation;
  const Step& step = operation.graph.steps[it->second.step];
  const uint32_t peer = step.peer;
  if (step.tag != kEndingTag || operation.part != Part::collective) operation.note_begun(peer);  // else: not yet
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
