// SPDX-License-Identifier: BSD-3-Clause
#include "engine/rooms/exports.hpp"

#include "engine/rooms/calls.hpp"
#include "engine/rooms/peers.hpp"

#include <algorithm>

namespace offpath::engine {

using base::Status;
using wire::Channel;
using wire::Kind;
using wire::Message;

namespace {

// Which operation a pull, or an answer to one, is about at the member that has the block.
OperationKey key_of(const Message& message) {
  return {message.channel, message.number, message.channel == Channel::collectives ? 0 : message.to};
}

}  // namespace

Exports::Exports(Core& core, Runner& runner, const Config& config, Sender& sender, Compression& compression,
                 Peers& peers, const RoomList& rooms)
    : Room(core, runner, config),
      Blocks({config.chunk_bytes, config.chunks_in_flight, config.batched_bytes}, compression),
      peers_(peers),
      rooms_(rooms),
      carriers_(make_carriers(*this, sender)) {}

void Exports::on_message(const Message& message, fabric::Bytes) {
  message.kind == Kind::pull ? handle_pull(message) : handle_done(message);
}

void Exports::forget(Operation& operation) {
  for (size_t i = 0; operation.exports_left > 0 && i < operation.exports.size(); ++i) {
    Carried& carried = operation.exports[i].carried;
    if (Carrier* const by = std::exchange(carried.by, nullptr)) by->forget(carried);
  }
}

bool Exports::progress() {
  bool busy = false;
  for (const auto& carrier : carriers_) busy |= carrier->move();
  return busy;
}

uint64_t Exports::bytes_left() const {
  uint64_t bytes = 0;
  for (const auto& carrier : carriers_) bytes += carrier->bytes_left();
  return bytes;
}

// ---- asked for ------------------------------------------------------------------------------------------------

void Exports::handle_pull(const Message& message) {
  const auto team = core_.find_team(message.team, message.from);
  if (team == nullptr) return peers_.handle_absent({message.team, message.from}, message, {});
  if (message.to >= team->spec.members.size()) return core_.refuse_message("a member that the team does not have");
  team->exchange.note_present(message.to);
  if (settle_push(*team, message)) return;  // the block was pushed before the pull came
  const OperationKey key = key_of(message);
  const auto operation = team->operations.find(key);
  const bool is_here = operation != team->operations.end();
  if (message.tag == kEndingTag && !key.is_request())
    return answer_ending(*team, is_here ? operation->second : nullptr, message);
  if (is_here) return serve(*operation->second, message);
  const bool to_come = key.is_request() ? Calls::is_to_come(*team, key) : key.number >= team->next_sequence;
  if (to_come && team->exchange.pulls_waiting() < config_.parked_limit) return team->exchange.ask(key, message);
  if (key.is_request()) return refuse_pull(*team, message.to, message.pull_id, OFFPATH_ERR_STATE);
  // A collective that ended without a loss has had all its blocks taken or pushed: it had none for this member.
  if (!to_come && !team->broken) return answer_empty(*team, message.to, message.pull_id);
  if (to_come || !peers_.pass_loss_on(*team, message.to, message.number))
    refuse_pull(*team, message.to, message.pull_id, OFFPATH_ERR_NOT_STARTED);
}

void Exports::refuse_pull(Team& team, uint32_t rank, uint64_t pull_id, offpath_status_t status) {
  Message fail;
  fail.kind = Kind::fail;
  fail.pull_id = pull_id;
  fail.status = status;
  peers_.send(team, rank, fail);
}

void Exports::answer_empty(Team& team, uint32_t rank, uint64_t pull_id) {
  const WorkerAddress& member = team.spec.members[rank];
  if (member.local) return peers_.offer_near(member.worker, pull_id, {}, 0);
  Message empty;
  empty.kind = Kind::data;
  empty.pull_id = pull_id;
  peers_.send(team, rank, empty);
}

void Exports::on_absent(Team& team, const Message& message) {
  if (message.to >= team.spec.members.size()) return core_.refuse_message("a member that the team does not have");
  if (!settle_push(team, message)) answer_departed(team, message);
}

void Exports::answer_departed(Team& team, const Message& pull) {
  if (peers_.say_abandoned(team, pull.to)) return;
  if (pull.channel != Channel::collectives) return refuse_pull(team, pull.to, pull.pull_id, OFFPATH_ERR_STATE);
  if (!team.broken) return answer_empty(team, pull.to, pull.pull_id);
  if (!peers_.pass_loss_on(team, pull.to, pull.number))
    refuse_pull(team, pull.to, pull.pull_id, OFFPATH_ERR_NOT_STARTED);
}

// A member asks for its block of an operation that was posted here.
void Exports::serve(Operation& operation, const Message& message) {
  operation.note_begun(message.to);
  const uint32_t index = operation.graph.find_export(message.to, message.tag);
  // Our member sends nothing to that one, which would take something.
  if (index == kNoStep) return answer_empty(*operation.team, message.to, message.pull_id);
  ExportProgress& progress = operation.exports[index];
  if (progress.pull_id == message.pull_id && progress.state == ExportState::sending) {  // more of it may leave
    progress.granted = std::max(progress.granted, message.offset);
    // No longer carried: the operation has ended, and nothing more of it leaves.
    if (Carrier* const by = progress.carried.by) by->allow(progress.carried, progress.granted);
    return;
  }
  const bool reading = progress.state == ExportState::reading && progress.pull_id == 0;
  if (progress.state != ExportState::open && !reading) {  // the block was taken or is on its way: refused
    return refuse_pull(*operation.team, message.to, message.pull_id, OFFPATH_ERR_STATE);
  }
  progress.pull_id = message.pull_id;
  progress.limit = message.bytes;
  progress.granted = message.offset;
  progress.readable = message.codecs;
  if (reading) return;  // the end of reading goes on with it
  progress.state = ExportState::requested;
  hand_out_after_step(operation, index);
}

void Exports::begin(Operation& operation) {
  for (const Message& pull : operation.team->exchange.take_pulls(operation.key)) serve(operation, pull);
  for (uint32_t i = 0; i < operation.exports.size(); ++i) {
    const bool open = operation.exports[i].state == ExportState::open;
    if (open && may_push(operation, operation.graph.exports[i])) hand_out_after_step(operation, i);
  }
}

// ---- there ----------------------------------------------------------------------------------------------------

void Exports::hand_out_after_step(Operation& operation, uint32_t index) {
  ExportProgress& progress = operation.exports[index];
  const uint32_t after = operation.graph.exports[index].after;
  if (is_there(operation, operation.graph.exports[index])) return hand_out(operation, index);
  if (!std::exchange(progress.waits, true)) {
    progress.next_waiting = std::exchange(operation.steps[after].first_waiting, index);
  }
}

void Exports::offer_waiting(Operation& operation, uint32_t first) {
  for (uint32_t waiting = first; waiting != kNoStep;) {
    const uint32_t next = operation.exports[waiting].next_waiting;
    hand_out(operation, waiting);
    waiting = next;
  }
}

// A block is refused here and not earlier: steps that wait until the export was taken may overwrite what the step
// before it has written.
void Exports::hand_out(Operation& operation, uint32_t index) {
  const Export& block = operation.graph.exports[index];
  const ExportProgress& progress = operation.exports[index];
  const bool asked = progress.state == ExportState::requested;
  if (!asked && progress.state != ExportState::open) return;
  const bool failed = block.after != kNoStep && operation.steps[block.after].failed;
  if (failed && asked) return refuse({&operation, index}, operation.status);
  if (failed) return;  // a later pull is refused
  if (asked && std::max(block.bytes, block.rest) > progress.limit) {
    refuse_pull(*operation.team, block.peer, progress.pull_id, OFFPATH_ERR_TRUNCATED);
    return resolve(operation, index, 0);
  }
  Location source;
  if (operation.bytes_of(index) > 0) {
    const Status status = operation.resolve(block.place, source);
    if (!status.ok() && asked) return refuse({&operation, index}, status);
    if (!status.ok()) return;  // a later pull is refused
  }
  offer(operation, index, source);
}

void Exports::offer(Operation& operation, uint32_t index, const Location& source) {
  const ExportProgress& progress = operation.exports[index];
  const WorkerAddress& peer = operation.team->spec.members[operation.graph.exports[index].peer];
  const Offer offer{{&operation, index},
                    source,
                    operation.bytes_of(index),
                    progress.state == ExportState::requested,
                    progress.pull_id,
                    progress.granted,
                    progress.readable,
                    peer.local,
                    peer.worker == config_.worker,
                    operation.graph.interpreted};
  for (const auto& carrier : carriers_) {
    if (carrier->take(offer)) return;
  }
}

// ---- taken ----------------------------------------------------------------------------------------------------

void Exports::handle_done(const Message& message) {
  const auto team = core_.find_team(message.team, message.from);
  if (team == nullptr) {
    const auto gone = peers_.departed().find({message.team, message.from});
    if (gone != peers_.departed().end()) settle_push(*gone->second, message);
    return;
  }
  if (message.to >= team->spec.members.size() || settle_push(*team, message)) return;
  const auto found = team->operations.find(key_of(message));
  if (found == team->operations.end()) return;
  Operation& operation = *found->second;
  operation.note_begun(message.to);
  const uint32_t index = operation.graph.find_export(message.to, message.tag);
  if (index == kNoStep || operation.exports[index].state != ExportState::sending) return;
  // A member of the same service reads our memory itself, so only it knows that it could not.
  if (message.status == OFFPATH_ERR_MEMORY_FAULT && team->spec.members[message.to].local) {
    operation.note_failure(Status::error(OFFPATH_ERR_MEMORY_FAULT, "member %u could not copy the block", message.to));
  }
  if (message.status == OFFPATH_OK) operation.exports[index].carried.decode_ns = message.decode_ns;
  resolve(operation, index, message.status == OFFPATH_OK ? operation.graph.exports[index].bytes : 0);
}

bool Exports::settle_push(Team& team, const Message& message) {
  if (message.channel != Channel::collectives) return false;
  if (!team.exchange.answer({message.number, message.to, message.tag})) return false;
  const auto operation = team.operations.find({.number = message.number});
  if (operation != team.operations.end()) operation->second->note_begun(message.to);
  return true;
}

void Exports::resolve(Operation& operation, uint32_t index, uint64_t bytes) {
  ExportProgress& progress = operation.exports[index];
  if (progress.state == ExportState::resolved) return;
  progress.state = ExportState::resolved;
  --operation.exports_left;
  if (Carrier* const by = std::exchange(progress.carried.by, nullptr)) by->forget(progress.carried);
  const Export& block = operation.graph.exports[index];
  const TeamSpec& team = operation.team->spec;
  if (operation.part == Part::collective && index < operation.graph.sealed()) {
    core_.observer.on_served(team.client, operation.context, block.peer, bytes, team.members[block.peer].local);
  }
  for (const uint32_t next : block.next) runner_.release_step(operation, next);
  runner_.end_if_done(operation);
}

void Exports::add_waits(const Operation& operation, const Note& note) const {
  for (size_t i = 0; i < operation.exports.size(); ++i) {
    const Export& block = operation.graph.exports[i];
    if (operation.exports[i].state == ExportState::resolved || !is_there(operation, block)) continue;
    const Waits known = core_.look_for(operation, block.peer);
    note(block.peer, known == Waits::sends ? Waits::takes : known);
  }
}

void Exports::close(Operation& operation, std::optional<uint32_t> peer) {
  for (uint32_t i = 0; i < operation.exports.size(); ++i) {
    const bool concerned = !peer || operation.graph.exports[i].peer == *peer;
    if (concerned && operation.exports[i].state == ExportState::open) resolve(operation, i, 0);
  }
}

}  // namespace offpath::engine
