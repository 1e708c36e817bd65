// SPDX-License-Identifier: BSD-3-Clause
// Exports, as carriers see them.
#include "engine/rooms/exports.hpp"
#include "engine/rooms/peers.hpp"

namespace offpath::engine {

using base::Status;
using wire::Message;

// With more to follow the receiver must say first what it takes in all.
bool Exports::may_push(const Operation& operation, const Export& block) const {
  const bool elsewhere = !operation.team->spec.members[block.peer].local;
  const bool is_last = block.rest <= block.bytes;
  const bool is_short = config_.pushed_bytes > 0 && block.bytes <= config_.pushed_bytes;
  return operation.part == Part::collective && elsewhere && is_short && is_last;
}

// Unless it was asked for, there are limits to what may lie there.
bool Exports::may_push(Block block, bool asked) const {
  const Operation& operation = *block.operation;
  const Export& its = operation.graph.exports[block.index];
  return operation.exports[block.index].pushable && may_push(operation, its) &&
         (asked || operation.team->exchange.may_push(its.peer));
}

Message Exports::push_of(Block block) const {
  const Operation& operation = *block.operation;
  const Export& its = operation.graph.exports[block.index];
  return about(wire::Kind::push, *operation.team, operation.key.channel, operation.key.number,
               operation.team->spec.rank, its.peer, its.tag);
}

fabric::Peer Exports::peer_of(Block block) {
  return peers_.peer_of(*block.operation->team, block.operation->graph.exports[block.index].peer);
}

Compression::Plan Exports::plan_coding(const Offer& offer) const {
  const Operation& operation = *offer.block.operation;
  const TeamSpec& team = operation.team->spec;
  const codecs::Wish& wish = team.compress ? *team.compress : config_.compress;
  return coding.plan(wish, operation.graph, operation.graph.exports[offer.block.index], offer.bytes,
                     wire::TeamIdHash()(team.id), offer.readable);
}

void Exports::offer_near(Block block, Location source, uint64_t bytes) {
  const Operation& operation = *block.operation;
  const WorkerAddress& peer = operation.team->spec.members[operation.graph.exports[block.index].peer];
  peers_.offer_near(peer.worker, operation.exports[block.index].pull_id, std::move(source), bytes);
}

Carried& Exports::carry(Block block, Carrier& by) {
  ExportProgress& progress = block.operation->exports[block.index];
  progress.state = ExportState::sending;
  progress.carried.by = &by;
  return progress.carried;
}

void Exports::begin_reading(Block block) { block.operation->exports[block.index].state = ExportState::reading; }

std::optional<bool> Exports::end_reading(Block block) {
  ExportProgress& progress = block.operation->exports[block.index];
  if (progress.state != ExportState::reading) return std::nullopt;
  const bool asked = progress.pull_id != 0;
  progress.state = asked ? ExportState::requested : ExportState::open;
  if (asked && block.operation->graph.exports[block.index].bytes > progress.limit) return std::nullopt;
  return asked;
}

void Exports::note_left(Block block, uint64_t bytes) {
  core_.note_moved(*block.operation, bytes);
  core_.traffic.sent_bytes += bytes;
}

void Exports::note_coded(Block block, const Coded& coded) { note_coded(*block.operation, coded); }

void Exports::note_coded(const Operation& operation, const Coded& coded) {
  core_.traffic.coded_bytes += coded.bytes;
  core_.traffic.wire_bytes += coded.wire_bytes;
  if (coded.lossy) core_.traffic.lossy_bytes += coded.bytes;
  core_.observer.on_coded(operation.team->spec.client, coded);
}

void Exports::note_sampled(Block block, const codecs::Chooser::Sampled& sampled) {
  core_.observer.on_sampled(block.operation->team->spec.client, sampled);
}

void Exports::note_pushed(Block block, uint64_t bytes, bool asked) {
  Operation& operation = *block.operation;
  const Export& its = operation.graph.exports[block.index];
  note_left(block, bytes);
  if (!asked) operation.team->exchange.note_pushed({operation.key.number, its.peer, its.tag});
  resolve(operation, block.index, bytes);
}

void Exports::end_empty(Block block) {
  Operation& operation = *block.operation;
  answer_empty(*operation.team, operation.graph.exports[block.index].peer, operation.exports[block.index].pull_id);
  resolve(operation, block.index, 0);
}

// The operation fails, and the member that has asked for the block is told.
void Exports::refuse(Block block, const Status& status) {
  Operation& operation = *block.operation;
  operation.note_failure(status);
  const uint64_t pull_id = operation.exports[block.index].pull_id;
  refuse_pull(*operation.team, operation.graph.exports[block.index].peer, pull_id, status.code());
  resolve(operation, block.index, 0);
}

void Exports::give_otherwise(Block block) {
  ExportProgress& progress = block.operation->exports[block.index];
  progress.pushable = false;
  if (progress.state == ExportState::requested) hand_out(*block.operation, block.index);
}

void Exports::later(Block block, uint64_t ticket, Then then) {
  runner_.later(*block.operation, ticket, std::move(then));
}

}  // namespace offpath::engine
