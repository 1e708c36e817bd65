// SPDX-License-Identifier: BSD-3-Clause
#include "engine/carriers/sender.hpp"

#include "wire/batch.hpp"

#include <algorithm>
#include <utility>

namespace offpath::engine {

using wire::Kind;
using wire::Message;

void Sender::say(fabric::Peer peer, const Message& message) {
  if (add_entry(peer, message, 0) != nullptr) return;
  uint8_t header[wire::kMaxMessageBytes];
  fabric_.send(peer, fabric::Bytes(header, wire::encode(message, header)), {}, 0);
}

void Sender::say_with(fabric::Peer peer, const Message& message, fabric::Bytes payload) {
  if (waiting_.empty() && send_payload(peer, message, payload)) return;
  waiting_.push_back({peer, message, {payload.begin(), payload.end()}});
}

bool Sender::send_payload(fabric::Peer peer, const Message& message, fabric::Bytes payload) {
  if (uint8_t* shared = add_entry(peer, message, payload.size()); shared != nullptr) {
    std::copy(payload.begin(), payload.end(), shared);
    return true;
  }
  Chunk* chunk = chunks_.take_to_send();
  if (chunk == nullptr) return false;
  std::copy(payload.begin(), payload.end(), chunk->memory.get());
  chunk->carrier = nullptr;
  say_from(peer, message, fabric::Bytes(chunk->memory.get(), payload.size()), chunk);
  return true;
}

bool Sender::send_waiting() {
  bool any = false;
  for (; !waiting_.empty(); waiting_.pop_front(), any = true) {
    const Waiting& next = waiting_.front();
    if (!lost_.contains(next.peer) && !send_payload(next.peer, next.message, next.payload)) break;
  }
  return any;
}

void Sender::say_from(fabric::Peer peer, const Message& message, fabric::Bytes payload, Chunk* chunk, fabric::Of of) {
  flush(peer);  // it would wait behind the payload
  uint8_t header[wire::kMaxMessageBytes];
  const size_t length = wire::encode(message, header);
  fabric_.send(peer, fabric::Bytes(header, length), payload, reinterpret_cast<uint64_t>(chunk), of);
}

void Sender::say_later(fabric::Peer peer, const Message& message, size_t limit) {
  auto& messages = owed_[peer];
  messages.push_back(message);
  const bool open = peer < outboxes_.size() && outboxes_[peer].chunk != nullptr;
  if (open || messages.size() >= limit) say_owed(peer);
}

void Sender::say_owed(fabric::Peer peer) {
  const auto messages = owed_.extract(peer);
  if (messages.empty()) return;
  for (const Message& message : messages.mapped()) say(peer, message);
}

void Sender::say_owed() {
  while (!owed_.empty()) say_owed(owed_.begin()->first);
}

uint8_t* Sender::add_entry(fabric::Peer peer, const Message& message, size_t payload_bytes) {
  if (payload_bytes + wire::kEntryOverheadBytes + wire::kMaxMessageBytes > batch_bytes_) return nullptr;
  if (peer >= outboxes_.size()) outboxes_.resize(peer + size_t{1});
  Outbox& box = outboxes_[peer];
  for (;;) {
    if (box.chunk == nullptr) {
      box.chunk = chunks_.take_to_send();
      if (box.chunk == nullptr) return nullptr;
      unsent_.push_back(peer);
      say_owed(peer);
      continue;  // that may have filled it
    }
    uint8_t* at = box.chunk->memory.get() + box.used;
    const size_t head_bytes = wire::encode_entry(message, payload_bytes, {at, batch_bytes_ - box.used});
    if (head_bytes > 0) {
      box.used += head_bytes + payload_bytes;
      ++box.entries;
      return at + head_bytes;
    }
    flush(peer);
  }
}

void Sender::flush(fabric::Peer peer) {
  if (peer >= outboxes_.size()) return;
  const Outbox box = std::exchange(outboxes_[peer], {});
  if (box.chunk == nullptr) return;
  fabric::Bytes entries(box.chunk->memory.get(), box.used);
  box.chunk->carrier = nullptr;
  if (box.entries > 1) {
    Message batch;
    batch.kind = Kind::batch;
    return say_from(peer, batch, entries, box.chunk);
  }
  // One message leaves as what it is.
  const auto only = wire::take_entry(entries);
  if (only) fabric_.send(peer, only->header, only->payload, reinterpret_cast<uint64_t>(box.chunk));
  if (!only || only->payload.empty()) chunks_.give_back(box.chunk);
}

void Sender::flush_unsent() {
  for (const fabric::Peer peer : unsent_) flush(peer);
  unsent_.clear();
}

}  // namespace offpath::engine
