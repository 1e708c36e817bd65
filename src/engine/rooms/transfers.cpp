// SPDX-License-Identifier: BSD-3-Clause
// Blocks as they are asked for, and as they come.
#include "base/random.hpp"
#include "engine/carriers/chunks.hpp"
#include "engine/rooms/imports.hpp"
#include "engine/rooms/local.hpp"
#include "engine/rooms/messages.hpp"
#include "engine/rooms/peers.hpp"

namespace offpath::engine {

using base::Status;
using wire::Kind;
using wire::Message;

namespace {
constexpr uint64_t kInPlace = 1;  // in the context of a fetch that has no chunk
}  // namespace

void Imports::on_message(const Message& message, fabric::Bytes payload) {
  switch (message.kind) {
    case Kind::push:
      return handle_push(message, payload);
    case Kind::fail:
      return handle_fail(message);
    default:
      if (check_data(message, payload.size()) == nullptr) return;
      return message.kind == Kind::data ? place(message.pull_id, message.offset, payload)
                                        : decode(message, payload, nullptr);
  }
}

void Imports::forget(Operation& operation) {
  if (operation.steps_left == 0) return;
  std::erase_if(pulls_, [&](const auto& entry) {
    const bool over = entry.second.operation == &operation;
    if (over) turns_.end(entry.first);
    return over;
  });
  give_turns();
}

void Imports::add_waits(const Operation& operation, const Note& note) const {
  for (const auto& [id, pull] : pulls_) {
    if (pull.operation != &operation) continue;
    const Step& step = operation.graph.steps[pull.step];
    if (step.kind != StepKind::ending) note(step.peer, core_.look_for(operation, step.peer));
  }
}

uint64_t Imports::bytes_left() const {
  uint64_t bytes = 0;
  for (const auto& [id, pull] : pulls_) {
    bytes +=
        pull.total == UINT64_MAX ? 0 : std::min(pull.total, std::max(pull.placed, turns_.granted(id))) - pull.placed;
  }
  return bytes;
}

// ---- asked for ------------------------------------------------------------------------------------------------

uint64_t Imports::add(Pull&& pull) {
  uint64_t id = 0;
  while (id == 0 || pulls_.contains(id)) id = base::random_u64();
  pulls_.emplace(id, std::move(pull));
  return id;
}

// A pull is made even where a failed step goes before it, because its peer waits until it was asked; but it takes
// nothing then.
void Imports::begin_step(Operation& operation, uint32_t index) {
  const Step& step = operation.graph.steps[index];
  StepProgress& progress = operation.steps[index];
  Pull pull{.operation = &operation, .step = index, .limit = std::max(step.bytes, step.room)};
  if (!progress.failed && step.bytes > 0) {
    const Status status = operation.resolve(step.target, pull.target);
    progress.failed = !status.ok();
    if (!status.ok()) operation.note_failure(status);
  }
  if (progress.failed) pull.limit = 0;
  const uint64_t limit = pull.limit, id = add(std::move(pull));
  const bool elsewhere = !operation.team->spec.members[step.peer].local;
  if (operation.part == Part::collective && elsewhere) {
    if (take_arrived(operation, id)) return;
    operation.asked[{step.peer, step.tag}] = id;
  }
  peers_.send(*operation.team, step.peer, pull_of(id, elsewhere ? turns_.ask(id, limit) : limit));
}

void Imports::handle_fail(const Message& message) {
  const auto it = pulls_.find(message.pull_id);
  if (it == pulls_.end()) return;
  const auto code = static_cast<offpath_status_t>(message.status < 0 ? message.status : OFFPATH_ERR_INTERNAL);
  Operation& operation = *it->second.operation;
  const Step& step = operation.graph.steps[it->second.step];
  const uint32_t peer = step.peer;
  if (step.kind != StepKind::ending) operation.note_begun(peer);  // else: not yet
  finish_pull(message.pull_id,
              Status::error(code, "member %u cannot send its block: %s", peer, offpath_status_string(code)),
              Cause::refused);
}

void Imports::take_offer(uint64_t pull_id, Location source, uint64_t bytes) {
  const auto it = pulls_.find(pull_id);
  if (it == pulls_.end()) return;
  const Pull& pull = it->second;
  Operation& operation = *pull.operation;
  operation.note_begun(operation.graph.steps[pull.step].peer);
  if (bytes > pull.limit) return core_.refuse_message("an offer of more than was asked for");
  if (bytes == 0) return finish_pull(pull_id, {}, Cause::complete);
  local_.add(LocalWork{.operation = &operation,
                       .step = pull.step,
                       .pull_id = pull_id,
                       .source = std::move(source),
                       .target = pull.target,
                       .bytes = bytes});
}

void Imports::end_copy(Operation& operation, const LocalWork& work) {
  const auto pull = pulls_.find(work.pull_id);
  if (pull == pulls_.end()) return;  // given up meanwhile
  pull->second.placed = work.done;
  // Its owner has said why: that is on its way, and ends a collective.
  if (work.status.ok() && work.source.memory->is_over()) {
    if (operation.part == Part::collective) return;
    const Status over = Status::error(OFFPATH_ERR_PEER_LOST, "member %u has given the operation up",
                                      operation.graph.steps[work.step].peer);
    return finish_pull(work.pull_id, over, Cause::source_fault);
  }
  finish_pull(work.pull_id, work.status, work.cause);
}

// ---- from the fabric ------------------------------------------------------------------------------------------

// Null (and counted) unless the chunk lies inside a block that is awaited; else its bytes count as received.
Pull* Imports::check_data(const Message& message, size_t payload_bytes) {
  const auto it = pulls_.find(message.pull_id);
  if (it == pulls_.end()) return nullptr;  // given up meanwhile
  Pull& pull = it->second;
  const bool coded = message.kind == Kind::coded;
  const size_t bytes = coded ? message.length : payload_bytes;
  if (coded && (bytes == 0 || bytes > config_.chunk_bytes || payload_bytes > bytes)) {
    core_.refuse_message("a compressed chunk of an impossible length");
    return nullptr;
  }
  const bool fits = message.bytes <= pull.limit && bytes <= message.bytes - message.offset &&
                    (pull.total == UINT64_MAX || pull.total == message.bytes) &&
                    bytes <= message.bytes - std::min(message.bytes, pull.received);
  if (!fits) {
    core_.refuse_message("data outside the block that was asked for");
    return nullptr;
  }
  pull.operation->note_begun(pull.operation->graph.steps[pull.step].peer);
  pull.total = message.bytes;
  pull.received += bytes;
  return &pull;
}

bool Imports::progress() {
  bool busy = false;
  while (!announcements_.empty()) {
    if (fetch_in_place(announcements_.front())) {
      announcements_.pop_front();
      busy = true;
      continue;
    }
    Chunk* chunk = chunks_.take();
    if (chunk == nullptr) return busy;
    const WaitingAnnouncement next = announcements_.front();
    announcements_.pop_front();
    busy = true;
    if (payload_of(next.message.kind) == Payload::chunk && check_data(next.message, next.bytes) == nullptr) {
      chunks_.give_back(chunk);
      fabric_.drop(next.handle);
      continue;
    }
    chunk->message = next.message;
    chunk->bytes = next.bytes;
    fabric_.fetch(next.handle, chunk->memory.get(), next.bytes, reinterpret_cast<uint64_t>(chunk));
  }
  return busy;
}

bool Imports::fetch_in_place(const WaitingAnnouncement& next) {
  const Message& message = next.message;
  const auto it = pulls_.find(message.pull_id);
  if (message.kind != Kind::data || it == pulls_.end() || message.bytes > it->second.limit) return false;
  if (next.bytes > it->second.limit) return false;  // where nothing is wanted there may be no place
  const memory::Port& target = *it->second.target.memory;
  uint8_t* place = target.view(it->second.target.address + message.offset, next.bytes);
  if (place == nullptr) return false;
  if (check_data(message, next.bytes) == nullptr) {
    fabric_.drop(next.handle);
    return true;
  }
  // To the operation it is an access that its port does later.
  const memory::Ticket ticket = runner_.next_ticket();
  runner_.when_done(*it->second.operation, memory::Outcome::later(), ticket,
                    [this, pull_id = message.pull_id, bytes = next.bytes, memory = it->second.target.memory](
                        Operation* operation, const Status& status) {
                      if (operation != nullptr && status.ok() && pulls_.contains(pull_id))
                        note_placed(pull_id, bytes, {});
                    });
  fabric_.fetch(next.handle, place, next.bytes, ticket.number << 1 | kInPlace);
  return true;
}

// A failed fetch means a lost peer, which is reported by itself.
void Imports::on_fetched(uint64_t context, bool success) {
  if ((context & kInPlace) != 0) {
    return runner_.end_access(context >> 1,
                              success ? Status() : Status::error(OFFPATH_ERR_PEER_LOST, "a fetch has failed"));
  }
  auto* chunk = reinterpret_cast<Chunk*>(context);
  const fabric::Bytes data(chunk->memory.get(), chunk->bytes);
  const Message& message = chunk->message;
  if (success && message.kind == Kind::batch) messages_.receive_batch(data);
  if (success && message.kind == Kind::data && pulls_.contains(message.pull_id)) {
    place(message.pull_id, message.offset, data, chunk);
    return runner_.settle();
  }
  if (success && message.kind == Kind::coded && pulls_.contains(message.pull_id)) {
    decode(message, data, chunk);
    return runner_.settle();
  }
  if (success && payload_of(message.kind) == Payload::body) messages_.dispatch(message, data);
  chunks_.give_back(chunk);
  runner_.settle();
}

void Imports::place(uint64_t pull_id, uint64_t offset, fabric::Bytes data, Chunk* holder) {
  Pull& pull = pulls_.at(pull_id);
  if (data.empty()) return note_placed(pull_id, 0, {});
  memory::Port& target = *pull.target.memory;
  std::vector<uint8_t> kept;  // what comes without a buffer of ours is gone after this call
  if (holder == nullptr && !target.prompt()) {
    kept.assign(data.begin(), data.end());
    data = kept;
  }
  const memory::Ticket ticket = runner_.next_ticket();
  const size_t bytes = data.size();
  runner_.when_done(*pull.operation, target.write(pull.target.address + offset, data.data(), bytes, ticket), ticket,
                    [this, pull_id, bytes, holder, kept = std::move(kept)](Operation* operation, const Status& status) {
                      if (holder != nullptr) chunks_.give_back(holder);
                      if (operation != nullptr && pulls_.contains(pull_id)) note_placed(pull_id, bytes, status);
                    });
}

void Imports::note_placed(uint64_t pull_id, uint64_t bytes, const Status& status) {
  Pull& pull = pulls_.at(pull_id);
  if (!status.ok()) return finish_pull(pull_id, status, Cause::target_fault);
  core_.note_moved(*pull.operation, bytes);
  pull.placed += bytes;
  core_.traffic.received_bytes += bytes;
  if (!pull.pushed) note_turn(pull_id, bytes);
  if (pull.placed == pull.total) return finish_pull(pull_id, {}, Cause::complete);
  give_turns();
}

// The block is complete or given up: either way its sender may have its buffer back, unless it has it already.
void Imports::finish_pull(uint64_t pull_id, const Status& status, Cause cause) {
  const Pull pull = std::move(pulls_.extract(pull_id).mapped());
  if (!pull.pushed) {
    turns_.end(pull_id);
    give_turns();
  }
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
    peers_.send(team, step.peer, done);
  }
  runner_.finish_step(operation, pull.step, status, pull.placed);
}

}  // namespace offpath::engine
