// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.hpp"
#include "engine/state.hpp"
#include "wire/batch.hpp"

namespace offpath::engine {

using base::Status;
using wire::Channel;
using wire::Kind;
using wire::Message;

void State::receive(fabric::Bytes header, fabric::Bytes payload) {
  if (header.empty()) return;  // of the other end's fabric to ours, which does not know it
  const auto message = wire::decode(header);
  if (!message.ok()) return refuse_message(message.status().text());
  if (message.value().kind == Kind::batch) return receive_batch(payload);
  receive_one(message.value(), payload);
}

void State::receive_batch(fabric::Bytes entries) {
  if (entries.empty()) return refuse_message("an empty batch");
  while (const auto entry = wire::take_entry(entries)) {
    const auto message = wire::decode(entry->header);
    if (message.ok()) receive_one(message.value(), entry->payload);
    if (!message.ok()) refuse_message(message.status().text());
  }
  if (!entries.empty()) refuse_message("a batch is cut short");
}

void State::receive_one(const Message& message, fabric::Bytes payload) {
  payload_of(message.kind) == Payload::chunk ? room_at(RoomIndex::imports).on_message(message, payload)
                                             : dispatch(message, payload);
  settle();
}

void State::refuse_message(const char* why) {
  if (++refused == 1) base::log_write(base::LogLevel::warn, "refused a message: %s", why);
}

void State::dispatch(const Message& message, fabric::Bytes payload) {
  switch (message.kind) {
#define OFFPATH_MESSAGE(kind, room, holds)                                                                          \
  case Kind::kind:                                                                                                  \
    if (Payload::holds == Payload::chunk) return refuse_message("only the fabric carries data");                    \
    if (Payload::holds == Payload::none && !payload.empty()) return refuse_message("a payload where none belongs"); \
    return room_at(RoomIndex::room).on_message(message, payload);
#include "engine/rooms.def"
    case Kind::batch:
      refuse_message("only the fabric carries batches, and batches no batches");
  }
}

std::shared_ptr<Team> State::find_team(const wire::TeamId& id, uint32_t rank) {
  const auto it = teams.find({id, rank});
  return it == teams.end() ? nullptr : it->second;
}

// Whether that operation, which is not here, may still be posted. A member knows of its own requests before anybody
// can pull their blocks.
bool State::is_to_come(const Team& team, const OperationKey& key) const {
  if (!key.is_request()) return key.number >= team.next_sequence;
  if (key.channel != Channel::answers || team.lost[key.peer] != 0) return false;
  const RequestPeer* peer = team.requests.empty() ? nullptr : team.requests[key.peer].get();
  return peer == nullptr || key.number >= peer->next_asked || peer->deferred.contains(key.number);
}

}  // namespace offpath::engine
