// SPDX-License-Identifier: BSD-3-Clause
#include "wire/batch.hpp"

#include "base/log.hpp"
#include "engine/state.hpp"

namespace offpath::engine {

using wire::Kind;
using wire::Message;

// The first operation of a team connects it, so that each member notices the death of each other one, and knows that
// there is somebody to push to.
void Engine::State::say_hello(Team& team) {
  if (team.said_hello) return;
  team.said_hello = true;
  Message hello = about(Kind::hello, team, wire::Channel::collectives, 0, team.spec.rank, 0);
  const auto size = static_cast<uint32_t>(team.spec.members.size());
  for (uint32_t i = 1; i < size; ++i) {
    hello.to = (team.spec.rank + i) % size;
    if (!team.spec.members[hello.to].local) send(team, hello.to, hello);
  }
}

void Engine::State::send(Team& team, uint32_t rank, const Message& message, fabric::Bytes payload) {
  if (team.spec.members[rank].local) return send_near(team.spec.members[rank].worker, message, payload);
  const fabric::Peer peer = peer_of(team, rank);
  if (peer == UINT32_MAX) return;
  if (!payload.empty()) {
    if (unsent_payloads.empty() && send_payload(peer, message, payload)) return;
    return unsent_payloads.push_back({peer, message, {payload.begin(), payload.end()}});
  }
  say(peer, message);
}

void Engine::State::say(fabric::Peer peer, const Message& message) {
  if (add_entry(peer, message, 0) != nullptr) return;
  uint8_t bytes[wire::kMaxMessageBytes];
  const size_t length = wire::encode(message, bytes);
  fabric.send(peer, fabric::Bytes(bytes, length), {}, 0);
}

bool Engine::State::send_payload(fabric::Peer peer, const Message& message, fabric::Bytes payload) {
  if (uint8_t* shared = add_entry(peer, message, payload.size()); shared != nullptr) {
    std::copy(payload.begin(), payload.end(), shared);
    return true;
  }
  Chunk* chunk = take_chunk_to_send();
  if (chunk == nullptr) return false;
  std::copy(payload.begin(), payload.end(), chunk->memory.get());
  chunk->stream = 0;
  uint8_t header[wire::kMaxMessageBytes];
  const size_t length = wire::encode(message, header);
  fabric.send(peer, fabric::Bytes(header, length), fabric::Bytes(chunk->memory.get(), payload.size()),
              reinterpret_cast<uint64_t>(chunk));
  return true;
}

// Before the streams, which take every chunk they get.
bool Engine::State::send_waiting() {
  bool any = false;
  for (; !unsent_payloads.empty(); unsent_payloads.pop_front(), any = true) {
    const WaitingMessage& next = unsent_payloads.front();
    if (!lost_peers.contains(next.peer) && !send_payload(next.peer, next.message, next.payload)) break;
  }
  return any;
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

uint8_t* Engine::State::add_entry(fabric::Peer peer, const Message& message, size_t payload_bytes) {
  if (payload_bytes + wire::kEntryOverheadBytes + wire::kMaxMessageBytes > config.chunk_bytes) return nullptr;
  if (peer >= outboxes.size()) outboxes.resize(peer + size_t{1});
  Outbox& box = outboxes[peer];
  for (;;) {
    if (box.chunk == nullptr) {
      box.chunk = take_chunk_to_send();
      if (box.chunk == nullptr) return nullptr;
      unsent.push_back(peer);
      say_owed(peer);
      continue;  // that may have filled it
    }
    uint8_t* at = box.chunk->memory.get() + box.used;
    const size_t head_bytes = wire::encode_entry(message, payload_bytes, {at, config.chunk_bytes - box.used});
    if (head_bytes > 0) {
      box.used += head_bytes + payload_bytes;
      ++box.entries;
      return at + head_bytes;
    }
    flush(peer);
  }
}

void Engine::State::flush(fabric::Peer peer) {
  const Outbox box = std::exchange(outboxes[peer], {});
  if (box.chunk == nullptr) return;
  fabric::Bytes entries(box.chunk->memory.get(), box.used);
  box.chunk->stream = 0;
  const auto context = reinterpret_cast<uint64_t>(box.chunk);
  if (box.entries > 1) {
    Message batch;
    batch.kind = Kind::batch;
    uint8_t header[wire::kMaxMessageBytes];
    const size_t length = wire::encode(batch, header);
    return fabric.send(peer, fabric::Bytes(header, length), entries, context);
  }
  // One message leaves as what it is.
  const auto only = wire::take_entry(entries);
  if (only) fabric.send(peer, only->header, only->payload, context);
  if (!only || only->payload.empty()) give_back(box.chunk);
}

bool Engine::State::flush_all() {
  const bool any = !unsent.empty();
  for (const fabric::Peer peer : unsent) flush(peer);
  unsent.clear();
  return any;
}

}  // namespace offpath::engine
