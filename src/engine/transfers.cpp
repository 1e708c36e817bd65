// SPDX-License-Identifier: BSD-3-Clause
// Blocks that come over the fabric.
#include "engine/exports.hpp"

namespace offpath::engine {

using base::Status;
using wire::Kind;
using wire::Message;

const Traffic& Engine::traffic() const { return state_->traffic; }

bool Engine::expects(uint64_t bytes) const {
  if (state_->exports->bytes_left() >= bytes) return true;
  uint64_t in = 0;
  for (const auto& [id, pull] : state_->pulls) {
    if (pull.total != UINT64_MAX) in += pull.total - pull.placed;
  }
  return in >= bytes;
}

void Engine::on_sent(uint64_t context, bool) {
  State& s = *state_;
  auto* chunk = reinterpret_cast<Chunk*>(context);
  if (chunk == nullptr) return;  // an address
  if (chunk->carrier != nullptr) chunk->carrier->on_sent(chunk->transfer);
  const uint64_t access = std::exchange(chunk->access, 0);
  s.chunks.give_back(chunk);
  if (access != 0) s.end_access(access, {});
}

namespace {
constexpr uint64_t kInPlace = 1;  // in the context of a fetch that has no chunk
}  // namespace

// Null (and counted) unless the chunk lies inside a block that is awaited; else its bytes count as received.
Pull* Engine::State::check_data(const Message& message, size_t payload_bytes) {
  const auto it = pulls.find(message.pull_id);
  if (it == pulls.end()) return nullptr;  // given up meanwhile
  Pull& pull = it->second;
  const bool coded = message.kind == Kind::coded;
  const size_t bytes = coded ? message.length : payload_bytes;
  if (coded && (bytes == 0 || bytes > config.chunk_bytes || payload_bytes > bytes)) {
    refuse_message("a compressed chunk of an impossible length");
    return nullptr;
  }
  const bool fits = message.bytes <= pull.limit && bytes <= message.bytes - message.offset &&
                    (pull.total == UINT64_MAX || pull.total == message.bytes) &&
                    bytes <= message.bytes - std::min(message.bytes, pull.received);
  if (!fits) {
    refuse_message("data outside the block that was asked for");
    return nullptr;
  }
  pull.operation->note_begun(pull.operation->graph.steps[pull.step].peer);
  pull.total = message.bytes;
  pull.received += bytes;
  return &pull;
}

void Engine::on_announced(fabric::Bytes header, size_t payload_bytes, fabric::Announced handle) {
  State& s = *state_;
  const auto message = wire::decode(header);
  const bool carries = message.ok() && payload_of(message.value().kind) != Payload::none;
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
    if (fetch_in_place(announcements.front())) {
      announcements.pop_front();
      busy = true;
      continue;
    }
    Chunk* chunk = chunks.take();
    if (chunk == nullptr) return busy;
    const WaitingAnnouncement next = announcements.front();
    announcements.pop_front();
    busy = true;
    if (payload_of(next.message.kind) == Payload::chunk && check_data(next.message, next.bytes) == nullptr) {
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

bool Engine::State::fetch_in_place(const WaitingAnnouncement& next) {
  const Message& message = next.message;
  const auto it = pulls.find(message.pull_id);
  if (message.kind != Kind::data || it == pulls.end() || message.bytes > it->second.limit) return false;
  const memory::Port& target = *it->second.target.memory;
  uint8_t* place = target.view(it->second.target.address + message.offset, next.bytes);
  if (place == nullptr) return false;
  if (check_data(message, next.bytes) == nullptr) {
    fabric.drop(next.handle);
    return true;
  }
  // To the operation it is an access that its port does later.
  const memory::Ticket ticket = next_ticket();
  when_done(*it->second.operation, memory::Outcome::later(), ticket,
            [this, pull_id = message.pull_id, bytes = next.bytes, memory = it->second.target.memory](
                Operation* operation, const Status& status) {
              if (operation != nullptr && status.ok() && pulls.contains(pull_id)) note_placed(pull_id, bytes, {});
            });
  fabric.fetch(next.handle, place, next.bytes, ticket.number << 1 | kInPlace);
  return true;
}

// A failed fetch means a lost peer, which is reported by itself.
void Engine::on_fetched(uint64_t context, bool success) {
  State& s = *state_;
  if ((context & kInPlace) != 0) {
    return s.end_access(context >> 1, success ? Status() : Status::error(OFFPATH_ERR_PEER_LOST, "a fetch has failed"));
  }
  auto* chunk = reinterpret_cast<Chunk*>(context);
  const fabric::Bytes data(chunk->memory.get(), chunk->bytes);
  const Message& message = chunk->message;
  if (success && message.kind == Kind::batch) s.receive_batch(data);
  if (success && message.kind == Kind::data && s.pulls.contains(message.pull_id)) {
    s.place(message.pull_id, message.offset, data, chunk);
    return s.settle();
  }
  if (success && message.kind == Kind::coded && s.pulls.contains(message.pull_id)) {
    s.decode(message, data, chunk);
    return s.settle();
  }
  if (success && payload_of(message.kind) == Payload::body) s.dispatch(message, data);
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
    done.decode_ns = pull.decode_ns;
    send(team, step.peer, done);
  }
  finish_step(operation, pull.step, status, pull.placed);
}

}  // namespace offpath::engine
