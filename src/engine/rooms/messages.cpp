// SPDX-License-Identifier: BSD-3-Clause
#include "engine/rooms/messages.hpp"

#include "wire/batch.hpp"

namespace offpath::engine {

using wire::Kind;
using wire::Message;

void Messages::receive(fabric::Bytes header, fabric::Bytes payload) {
  if (header.empty()) return;  // of the other end's fabric to ours, which does not know it
  const auto message = wire::decode(header);
  if (!message.ok()) return core_.refuse_message(message.status().text());
  if (message.value().kind == Kind::batch) return receive_batch(payload);
  receive_one(message.value(), payload);
}

void Messages::receive_batch(fabric::Bytes entries) {
  if (entries.empty()) return core_.refuse_message("an empty batch");
  while (const auto entry = wire::take_entry(entries)) {
    const auto message = wire::decode(entry->header);
    if (message.ok()) receive_one(message.value(), entry->payload);
    if (!message.ok()) core_.refuse_message(message.status().text());
  }
  if (!entries.empty()) core_.refuse_message("a batch is cut short");
}

void Messages::receive_one(const Message& message, fabric::Bytes payload) {
  payload_of(message.kind) == Payload::chunk ? hand_over(message, payload) : dispatch(message, payload);
  runner_.settle();
}

void Messages::dispatch(const Message& message, fabric::Bytes payload) {
  switch (payload_of(message.kind)) {
    case Payload::none:
      if (!payload.empty()) return core_.refuse_message("a payload where none belongs");
      return hand_over(message, payload);
    case Payload::body:
      return hand_over(message, payload);
    case Payload::chunk:
      return core_.refuse_message("only the fabric carries data");
    case Payload::batch:
      return core_.refuse_message("only the fabric carries batches, and batches no batches");
  }
}

}  // namespace offpath::engine
