// SPDX-License-Identifier: BSD-3-Clause
#include "engine/state.hpp"

namespace offpath::engine {

using base::Status;
using wire::Kind;
using wire::Message;

const Traffic& Engine::traffic() const { return state_->traffic; }

bool Engine::expects(uint64_t bytes) const {
  uint64_t out = 0;
  for (const auto& [id, stream] : state_->streams) out += stream.bytes - stream.offset;
  if (out >= bytes) return true;
  uint64_t in = 0;
  for (const auto& [id, pull] : state_->pulls) {
    if (pull.total != UINT64_MAX) in += pull.total - pull.placed;
  }
  return in >= bytes;
}

// ---- sending --------------------------------------------------------------------------------------------------

bool Engine::State::move_streams() {
  bool busy = false;
  // Starts after the stream served last, so that a short pool is shared fairly.
  auto it = streams.upper_bound(last_stream_served);
  for (size_t left = streams.size(); left > 0 && !streams.empty(); --left) {
    if (it == streams.end()) it = streams.begin();
    const uint64_t id = it->first;
    if (it->second.offset < it->second.bytes && it->second.in_flight < config.chunks_in_flight) {
      if (!send_chunk(id)) break;
      busy = true;
      last_stream_served = id;
    }
    it = streams.upper_bound(id);  // sending may have ended streams
  }
  settle();
  return busy;
}

bool Engine::State::send_chunk(uint64_t id) {
  Stream& stream = streams.at(id);
  Chunk* chunk = chunks.take_to_send();
  if (chunk == nullptr) return false;
  const uint64_t bytes = std::min<uint64_t>(config.chunk_bytes, stream.bytes - stream.offset);
  const uint64_t from = stream.source.address + stream.offset;
  Message data;
  data.kind = Kind::data;
  data.pull_id = stream.pull_id;
  data.bytes = stream.bytes;
  data.offset = stream.offset;
  chunk->stream = id;
  chunk->bytes = bytes;
  stream.offset += bytes;
  ++stream.in_flight;
  ++stream.reading;
  if (const uint8_t* payload = stream.source.memory->view(from, bytes); payload != nullptr) {
    chunk->source = stream.source.memory;
    emit_chunk(stream, id, chunk, payload, data);
    return true;
  }
  const memory::Ticket ticket = next_ticket();
  when_done(*stream.operation, stream.source.memory->read(chunk->memory.get(), from, bytes, ticket), ticket,
            [this, id, chunk, data](Operation* operation, const Status& status) {
              const auto found = streams.find(id);  // it may have been given up
              const bool wanted = operation != nullptr && found != streams.end();
              if (wanted && status.ok()) return emit_chunk(found->second, id, chunk, chunk->memory.get(), data);
              chunks.give_back(chunk);
              if (wanted) fail_stream(id, status);
            });
  return true;
}

void Engine::State::emit_chunk(Stream& stream, uint64_t id, Chunk* chunk, const uint8_t* payload, const Message& data) {
  const uint64_t bytes = chunk->bytes;
  uint8_t* shared = bytes <= config.batched_bytes ? sender.add_entry(stream.peer, data, bytes) : nullptr;
  if (shared != nullptr) {
    std::copy_n(payload, bytes, shared);
    --stream.in_flight;
    chunks.give_back(chunk);
  } else {
    sender.say_from(stream.peer, data, fabric::Bytes(payload, bytes), chunk);
  }
  note_moved(*stream.operation, bytes);
  traffic.sent_bytes += bytes;
  --stream.reading;
  if (stream.offset == stream.bytes && stream.reading == 0) streams.erase(id);
}

void Engine::State::fail_stream(uint64_t id, const Status& status) {
  const Stream& stream = streams.at(id);
  Operation& operation = *stream.operation;
  const uint32_t index = stream.export_index;
  refuse_pull(*operation.team, operation.graph.exports[index].peer, stream.pull_id, status.code());
  operation.note_failure(status);
  resolve_export(operation, index, 0);  // ends the stream
}

void Engine::on_sent(uint64_t context, bool) {
  State& s = *state_;
  auto* chunk = reinterpret_cast<Chunk*>(context);
  if (chunk == nullptr) return;  // an address
  if (const auto it = s.streams.find(chunk->stream); it != s.streams.end()) --it->second.in_flight;
  s.chunks.give_back(chunk);
}

// ---- receiving ------------------------------------------------------------------------------------------------

namespace {
bool carries_payload(Kind kind) { return kind == Kind::data || kind == Kind::batch || carries_body(kind); }
}  // namespace

// Null (and counted) unless the chunk lies inside a block that is awaited; else its bytes count as received.
Pull* Engine::State::check_data(const Message& message, size_t bytes) {
  const auto it = pulls.find(message.pull_id);
  if (it == pulls.end()) return nullptr;  // given up meanwhile
  Pull& pull = it->second;
  const bool fits = message.bytes <= pull.limit && bytes <= message.bytes - message.offset &&
                    (pull.total == UINT64_MAX || pull.total == message.bytes) &&
                    bytes <= message.bytes - std::min(message.bytes, pull.received);
  if (!fits) {
    refuse_message("data outside the block that was asked for");
    return nullptr;
  }
  pull.operation->begun.insert(pull.operation->graph.steps[pull.step].peer);
  pull.total = message.bytes;
  pull.received += bytes;
  return &pull;
}

void Engine::on_announced(fabric::Bytes header, size_t payload_bytes, fabric::Announced handle) {
  State& s = *state_;
  const auto message = wire::decode(header);
  const bool carries = message.ok() && carries_payload(message.value().kind);
  if (!carries || payload_bytes > s.config.chunk_bytes) {
    s.refuse_message("an announced payload where none belongs");
    s.fabric.drop(handle);
    return;
  }
  s.announcements.push_back({message.value(), payload_bytes, handle});
}

bool Engine::State::place_announced() {
  bool busy = false;
  while (!announcements.empty()) {
    Chunk* chunk = chunks.take();
    if (chunk == nullptr) return busy;
    const WaitingAnnouncement next = announcements.front();
    announcements.pop_front();
    busy = true;
    if (next.message.kind == Kind::data && check_data(next.message, next.bytes) == nullptr) {
      chunks.give_back(chunk);
      fabric.drop(next.handle);
      continue;
    }
    chunk->message = next.message;
    chunk->bytes = next.bytes;
    fabric.fetch(next.handle, chunk->memory.get(), next.bytes, reinterpret_cast<uint64_t>(chunk));
  }
  return busy;
}

// A failed fetch means a lost peer, which is reported by itself.
void Engine::on_fetched(uint64_t context, bool success) {
  State& s = *state_;
  auto* chunk = reinterpret_cast<Chunk*>(context);
  const fabric::Bytes data(chunk->memory.get(), chunk->bytes);
  const Message& message = chunk->message;
  if (success && message.kind == Kind::batch) s.receive_batch(data);
  if (success && message.kind == Kind::data && s.pulls.contains(message.pull_id)) {
    s.place(message.pull_id, message.offset, data, chunk);
    return s.settle();
  }
  if (success && carries_body(message.kind)) s.handle(message, data);
  s.chunks.give_back(chunk);
  s.settle();
}

void Engine::State::place(uint64_t pull_id, uint64_t offset, fabric::Bytes data, Chunk* holder) {
  Pull& pull = pulls.at(pull_id);
  if (data.empty()) return note_placed(pull_id, 0, {});
  memory::Port& target = *pull.target.memory;
  std::vector<uint8_t> kept;  // what comes without a buffer of ours is gone after this call
  if (holder == nullptr && !target.prompt()) {
    kept.assign(data.begin(), data.end());
    data = kept;
  }
  const memory::Ticket ticket = next_ticket();
  const size_t bytes = data.size();
  when_done(*pull.operation, target.write(pull.target.address + offset, data.data(), bytes, ticket), ticket,
            [this, pull_id, bytes, holder, kept = std::move(kept)](Operation* operation, const Status& status) {
              if (holder != nullptr) chunks.give_back(holder);
              if (operation != nullptr && pulls.contains(pull_id)) note_placed(pull_id, bytes, status);
            });
}

void Engine::State::note_placed(uint64_t pull_id, uint64_t bytes, const Status& status) {
  Pull& pull = pulls.at(pull_id);
  if (!status.ok()) return finish_pull(pull_id, status, Cause::target_fault);
  note_moved(*pull.operation, bytes);
  pull.placed += bytes;
  traffic.received_bytes += bytes;
  if (pull.placed == pull.total) finish_pull(pull_id, {}, Cause::complete);
}

// The block is complete or given up: either way its sender may have its buffer back, unless it has it already.
void Engine::State::finish_pull(uint64_t pull_id, const Status& status, Cause cause) {
  const Pull pull = std::move(pulls.extract(pull_id).mapped());
  Operation& operation = *pull.operation;
  const Step& step = operation.graph.steps[pull.step];
  Team& team = *operation.team;
  const bool empty = cause == Cause::complete && pull.placed == 0;
  if (!pull.pushed && !empty && cause != Cause::refused) {
    Message done =
        about(Kind::done, team, operation.incoming(), operation.key.number, step.peer, team.spec.rank, step.tag);
    // A fault of ours is not the sender's; one in its memory is, and it cannot know otherwise.
    if (!status.ok()) done.status = cause == Cause::source_fault ? OFFPATH_ERR_MEMORY_FAULT : OFFPATH_ERR_STATE;
    send(team, step.peer, done);
  }
  finish_step(operation, pull.step, status, pull.placed);
}

}  // namespace offpath::engine
