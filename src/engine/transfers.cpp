// SPDX-License-Identifier: BSD-3-Clause
#include "engine/state.hpp"

namespace offpath::engine {

using base::Status;
using wire::Kind;
using wire::Message;

Chunk* Engine::State::take_chunk() {
  if (free_chunks.empty()) {
    if (chunks.size() >= config.pool_chunks) return nullptr;
    chunks.push_back(std::make_unique<Chunk>());
    chunks.back()->memory.reset(new (std::align_val_t(4096)) uint8_t[config.chunk_bytes]);
    return chunks.back().get();
  }
  Chunk* chunk = free_chunks.back();
  free_chunks.pop_back();
  return chunk;
}

void Engine::State::give_back(Chunk* chunk) { free_chunks.push_back(chunk); }

uint64_t Engine::moved_bytes() const { return state_->moved_bytes; }

bool Engine::expects(uint64_t bytes) const {
  for (const auto& [id, stream] : state_->streams) {
    if (stream.bytes - stream.offset >= bytes) return true;
  }
  for (const auto& [id, pull] : state_->pulls) {
    if (pull.total != UINT64_MAX && pull.total - pull.placed >= bytes) return true;
  }
  return false;
}

// ---- sending --------------------------------------------------------------------------------------------------

bool Engine::State::move_streams() {
  bool busy = false;
  // Starts after the stream served last, so that a short pool is shared fairly.
  auto it = streams.upper_bound(last_stream_served);
  for (size_t left = streams.size(); left > 0; --left) {
    if (it == streams.end()) it = streams.begin();
    Stream& stream = it->second;
    const uint64_t id = it->first;
    if (stream.operation == nullptr || stream.offset == stream.bytes || stream.in_flight >= config.chunks_in_flight) {
      ++it;
      continue;
    }
    if (!send_chunk(stream)) break;
    busy = true;
    last_stream_served = id;
    it = streams.upper_bound(id);  // sending may have ended streams
    if (streams.empty()) break;
  }
  return busy;
}

bool Engine::State::send_chunk(Stream& stream) {
  // Half of the pool is kept for what comes in: senders waiting for each other's buffers would never end.
  const size_t in_use = chunks.size() - free_chunks.size();
  if (in_use * 2 >= config.pool_chunks) return false;
  Chunk* chunk = take_chunk();
  if (chunk == nullptr) return false;
  const uint64_t bytes = std::min<uint64_t>(config.chunk_bytes, stream.bytes - stream.offset);
  const uint8_t* payload = stream.memory->view(stream.address + stream.offset, bytes);
  if (payload == nullptr) {
    const Status status = stream.memory->read(chunk->memory.get(), stream.address + stream.offset, bytes);
    if (!status.ok()) {
      give_back(chunk);
      Operation& operation = *stream.operation;
      const uint32_t index = stream.export_index;
      refuse_pull(*operation.team, operation.graph.exports[index].peer, stream.pull_id, status.code());
      operation.note_failure(status);
      stream.operation = nullptr;
      if (stream.in_flight == 0) streams.erase(stream.id);
      resolve_export(operation, index);
      finish_if_done(operation);
      return true;
    }
    payload = chunk->memory.get();
  }
  chunk->stream = stream.id;
  Message data;
  data.kind = Kind::data;
  data.pull_id = stream.pull_id;
  data.bytes = stream.bytes;
  data.offset = stream.offset;
  uint8_t header[wire::kMaxMessageBytes];
  const size_t length = wire::encode(data, header);
  stream.offset += bytes;
  moved_bytes += bytes;
  ++stream.in_flight;
  fabric.send(stream.peer, fabric::Bytes(header, length), fabric::Bytes(payload, bytes),
              reinterpret_cast<uint64_t>(chunk));
  return true;
}

void Engine::on_sent(uint64_t context, bool) {
  State& s = *state_;
  auto* chunk = reinterpret_cast<Chunk*>(context);
  s.give_back(chunk);
  const auto it = s.streams.find(chunk->stream);
  if (it == s.streams.end()) return;
  Stream& stream = it->second;
  --stream.in_flight;
  const bool sent = stream.offset == stream.bytes;
  if (stream.in_flight == 0 && (sent || stream.operation == nullptr)) s.streams.erase(it);
}

// ---- receiving ------------------------------------------------------------------------------------------------

// Null (and counted) unless the chunk lies inside a block that is awaited; else its bytes count as received.
Pull* Engine::State::check_data(const Message& message, size_t bytes) {
  const auto it = pulls.find(message.pull_id);
  if (it == pulls.end()) return nullptr;  // given up meanwhile
  Pull& pull = it->second;
  const Step& step = pull.operation->graph.steps[pull.step];
  const bool fits = message.bytes <= step.bytes && bytes <= message.bytes - message.offset &&
                    (pull.total == UINT64_MAX || pull.total == message.bytes) &&
                    bytes <= message.bytes - std::min(message.bytes, pull.received);
  if (!fits) {
    ++refused;
    return nullptr;
  }
  pull.operation->begun.insert(step.peer);
  pull.total = message.bytes;
  pull.received += bytes;
  return &pull;
}

void Engine::on_announced(fabric::Bytes header, size_t payload_bytes, fabric::Announced handle) {
  State& s = *state_;
  const auto message = wire::decode(header);
  if (!message.ok() || message.value().kind != Kind::data || payload_bytes > s.config.chunk_bytes) {
    ++s.refused;
    s.fabric.drop(handle);
    return;
  }
  s.announcements.push_back({message.value(), payload_bytes, handle});
}

bool Engine::State::place_announced() {
  bool busy = false;
  while (!announcements.empty()) {
    Chunk* chunk = take_chunk();
    if (chunk == nullptr) return busy;
    const WaitingAnnouncement next = announcements.front();
    announcements.pop_front();
    busy = true;
    if (check_data(next.message, next.bytes) == nullptr) {
      give_back(chunk);
      fabric.drop(next.handle);
      continue;
    }
    chunk->pull_id = next.message.pull_id;
    chunk->offset = next.message.offset;
    chunk->bytes = next.bytes;
    fabric.fetch(next.handle, chunk->memory.get(), next.bytes, reinterpret_cast<uint64_t>(chunk));
  }
  return busy;
}

void Engine::on_fetched(uint64_t context, bool success) {
  State& s = *state_;
  auto* chunk = reinterpret_cast<Chunk*>(context);
  s.give_back(chunk);
  const auto it = s.pulls.find(chunk->pull_id);
  if (!success || it == s.pulls.end()) return;  // a failed fetch means a lost peer, which is reported by itself
  const Pull& pull = it->second;
  const Step& step = pull.operation->graph.steps[pull.step];
  const Status status =
      pull.operation->team->memory->write(step.target + chunk->offset, chunk->memory.get(), chunk->bytes);
  if (!status.ok()) return s.finish_pull(chunk->pull_id, status);
  s.chunk_arrived(chunk->pull_id, chunk->bytes);
}

void Engine::State::chunk_arrived(uint64_t pull_id, uint64_t bytes) {
  Pull& pull = pulls.at(pull_id);
  pull.placed += bytes;
  moved_bytes += bytes;
  if (pull.placed == pull.total) finish_pull(pull_id, {});
}

// The block is complete or given up: either way its sender may have its buffer back.
void Engine::State::finish_pull(uint64_t pull_id, Status status, Fault fault) {
  const Pull pull = pulls.at(pull_id);
  pulls.erase(pull_id);
  Operation& operation = *pull.operation;
  const Step& step = operation.graph.steps[pull.step];
  Team& team = *operation.team;
  std::erase_if(copies, [&](const LocalCopy& copy) { return copy.pull_id == pull_id; });
  Message done;
  done.kind = Kind::done;
  done.team = team.spec.id;
  done.sequence = operation.sequence;
  done.from = step.peer;
  done.to = team.spec.rank;
  done.tag = step.tag;
  // A fault of ours is not the sender's; one in its memory is, and it cannot know otherwise.
  if (!status.ok()) done.status = fault == Fault::source ? OFFPATH_ERR_MEMORY_FAULT : OFFPATH_ERR_STATE;
  send(team, step.peer, done);
  if (status.ok()) {
    observer.on_pulled(team.spec.client, operation.context, step.peer, pull.placed, team.spec.members[step.peer].local);
  } else {
    operation.note_failure(status);
  }
  finish_step(operation, pull.step);
  finish_if_done(operation);
}

// ---- copies inside the node ------------------------------------------------------------------------------------

bool Engine::State::move_local_copies() {
  if (copies.empty()) return false;
  LocalCopy copy = std::move(copies.front());
  copies.pop_front();
  Operation& operation = *operations.at(copy.operation_id);
  memory::Memory& target = *operation.team->memory;
  const uint64_t bytes = std::min<uint64_t>(config.chunk_bytes, copy.bytes - copy.offset);
  Chunk* chunk = nullptr;
  Status status;
  Fault fault = Fault::target;
  const uint64_t from = copy.source + copy.offset;
  const uint64_t to = copy.target + copy.offset;
  if (const uint8_t* view = copy.source_memory->view(from, bytes); view != nullptr) {
    status = target.write(to, view, bytes);
  } else if ((chunk = take_chunk()) == nullptr) {
    copies.push_front(std::move(copy));
    return false;
  } else {
    status = copy.source_memory->read(chunk->memory.get(), from, bytes);
    if (!status.ok()) fault = Fault::source;
    if (status.ok()) status = target.write(to, chunk->memory.get(), bytes);
    give_back(chunk);
  }
  copy.offset += bytes;
  const bool ended = !status.ok() || copy.offset == copy.bytes;
  if (!ended) {
    copies.push_back(std::move(copy));
  } else if (copy.pull_id != 0) {
    pulls.at(copy.pull_id).placed = copy.offset;
    finish_pull(copy.pull_id, status, fault);
  } else {
    if (!status.ok()) operation.note_failure(status);
    if (status.ok()) {
      observer.on_pulled(operation.team->spec.client, operation.context, operation.team->spec.rank, copy.bytes, true);
    }
    finish_step(operation, copy.step);
    finish_if_done(operation);
  }
  return true;
}

}  // namespace offpath::engine
