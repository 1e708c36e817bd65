// SPDX-License-Identifier: BSD-3-Clause
// Chunks of multicast steps that did not come: asked for by one node, and given by another.
#include "engine/multicasts/multicasts.hpp"
#include "engine/rooms/exports.hpp"
#include "engine/rooms/imports.hpp"
#include "engine/rooms/peers.hpp"

namespace offpath::engine {

using base::Status;
using multicast::Chunks;
using wire::Kind;
using wire::Message;

namespace {
constexpr size_t kMostFetchExports = 2 * kMaxFetches;
}  // namespace

void Multicasts::fetch(Run& run, const multicast::Act& act) {
  Operation& operation = *run.operation;
  Team& team = *operation.team;
  const uint32_t peer = run.plan.members[act.to];
  const uint64_t bytes = run.task->arrivals().shape().bytes(act.part, act.run);
  uint32_t index = static_cast<uint32_t>(operation.steps.size());
  if (run.free_steps.empty()) {
    operation.graph.steps.emplace_back();
    operation.steps.emplace_back();
  } else {
    index = run.free_steps.back();
    run.free_steps.pop_back();
  }
  operation.graph.steps[index] = {
      .kind = StepKind::fetch, .peer = peer, .tag = graph::kFetchTags + run.fetch_count++, .bytes = bytes};
  operation.steps[index] = {};
  ++operation.steps_left;
  run.fetches[index] = {act.part, act.run};
  Message message = about(Kind::fetch, team, operation.key.channel, operation.key.number, peer, team.spec.rank,
                          operation.graph.steps[index].tag);
  message.bytes = bytes;
  message.codecs = compression_.coder.readable();
  message.part = act.part;
  message.first = act.run.first;
  message.count = act.run.count;
  message.pull_id = imports_.add({.operation = &operation,
                                  .step = index,
                                  .target = {run.pieces, address_of(run, act.part, act.run.first)},
                                  .limit = bytes});
  peers_.send(team, peer, message);
}

void Multicasts::end_step(Operation& operation, uint32_t step, const Status& status, uint64_t bytes) {
  Run* const run = find(operation);
  if (run == nullptr) return;
  const auto [part, chunks] = run->fetches.extract(step).mapped();
  run->free_steps.push_back(step);
  run->received += bytes;
  if (!status.ok() && run->status.ok()) run->status = status;
  if (run->status.ok() && bytes != operation.graph.steps[step].bytes) {
    run->status = Status::error(OFFPATH_ERR_INTERNAL, "member %u has sent a part of what was fetched",
                                operation.graph.steps[step].peer);
  }
  run->task->fetched(chunks);
  pump(*run);
}

void Multicasts::handle_fetch(const Message& message) {
  const auto team = core_.find_team(message.team, message.from);
  if (team == nullptr) return peers_.handle_absent({message.team, message.from}, message, {});
  const bool possible = message.to < team->spec.members.size() && message.channel == wire::Channel::collectives;
  if (!possible) return core_.refuse_message("a fetch that cannot be");
  const auto found = team->operations.find({.number = message.number});
  Run* const run = found == team->operations.end() ? nullptr : find(*found->second);
  const auto refuse = [&](offpath_status_t status) {
    exports_.refuse_pull(*team, message.to, message.pull_id, status);
  };
  if (run == nullptr || !run->task) return refuse(OFFPATH_ERR_STATE);
  Operation& operation = *run->operation;
  const Chunks chunks{message.first, message.count};
  const uint32_t successor = run->task->successor();
  const bool may = message.to == run->plan.members[successor] && run->task->may_pull(successor, message.part, chunks);
  if (!may || message.tag < graph::kFetchTags || message.tag == kEndingTag) return refuse(OFFPATH_ERR_STATE);
  if (!run->status.ok()) return refuse(run->status.code());
  const uint64_t bytes = run->task->arrivals().shape().bytes(message.part, chunks);
  if (message.bytes < bytes) return refuse(OFFPATH_ERR_TRUNCATED);
  auto& exports = operation.exports;
  size_t index = exports.size();
  for (size_t i = exports.size(); i-- > operation.graph.sealed();) {
    const bool over = exports[i].state == ExportState::resolved;
    if (!over && operation.graph.exports[i].tag == message.tag) return refuse(OFFPATH_ERR_STATE);
    if (over) index = i;
  }
  if (index - operation.graph.sealed() >= kMostFetchExports) return refuse(OFFPATH_ERR_STATE);
  if (index == exports.size()) {
    operation.graph.exports.emplace_back();
    exports.emplace_back();
  }
  // What is passed on loses nothing any more: it counts as no memory of this member's.
  const auto place = message.part == run->plan.own ? graph::Place() : graph::scratch_place(0);
  operation.graph.exports[index] = {.peer = message.to, .tag = message.tag, .place = place, .bytes = bytes, .next = {}};
  exports[index] = {};
  ++operation.exports_left;
  ExportProgress& progress = exports[index];
  progress.state = ExportState::requested;
  progress.pushable = false;  // what is pushed is found by an export's tag
  progress.pull_id = message.pull_id;
  progress.limit = message.bytes;
  progress.readable = message.codecs;
  const Location source{run->pieces, address_of(*run, message.part, message.first)};
  exports_.offer(operation, static_cast<uint32_t>(index), source);
}

}  // namespace offpath::engine
