// SPDX-License-Identifier: BSD-3-Clause
#include "engine/arrivals.hpp"
#include "engine/calls.hpp"
#include "engine/exports.hpp"
#include "engine/imports.hpp"
#include "engine/local.hpp"
#include "engine/multicasts.hpp"
#include "engine/peers.hpp"

namespace offpath::engine {

using base::Status;
using wire::Kind;
using wire::Message;

Status Operation::resolve(const Place& place, Location& out) const {
  if (place.file > graph.files.size()) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "a block names file %u of %zu", place.file, graph.files.size());
  }
  const std::shared_ptr<memory::Port>& memory = place.file != 0           ? graph.files[place.file - 1]
                                                : graph.memory != nullptr ? graph.memory
                                                                          : team->memory;
  if (place.layout == kClient) {
    out = {memory, place.base + place.offset};
  } else if (place.layout == kScratch) {
    if (scratch == nullptr) {
      return Status::error(OFFPATH_ERR_NO_MEMORY, "the service has no %llu bytes for partial results",
                           static_cast<unsigned long long>(graph.scratch_bytes));
    }
    out = {scratch, place.base + place.offset};
  } else if (place.layout < layouts.size()) {
    out = {memory::make_strided(memory, place.base, layouts[place.layout]), place.offset};
  } else {
    return Status::error(OFFPATH_ERR_ARGUMENT, "a block names layout %u of %zu", place.layout, layouts.size());
  }
  return {};
}

Status Operation::shortfall() const {
  bool ended = false, torn = false;
  for (uint32_t i = 0; graph.shortfall != OFFPATH_OK && i < own_steps; ++i) {
    const Step& step = graph.steps[i];
    if (step.kind != StepKind::pull || step.bytes == 0) continue;
    const uint64_t came = steps[i].moved;
    torn |= came > step.bytes || (came > 0 ? ended : i == 0);
    ended |= came < step.bytes;
  }
  if (!ended && !torn) return {};
  return Status::error(torn ? OFFPATH_ERR_TRUNCATED : graph.shortfall, "the members state different lengths");
}

void State::start_step(Operation& operation, uint32_t index) {
  const Step& step = operation.graph.steps[index];
  if (step.kind == StepKind::pull || step.kind == StepKind::ending) return imports->want(operation, index);
  if (step.kind == StepKind::multicast) return multicasts->begin(operation, index);
  if (operation.steps[index].failed) return finish_step(operation, index, operation.status, 0);
  local->begin(operation, index);
}

void State::note_moved(Operation& operation, uint64_t bytes) {
  if (bytes == 0 || std::exchange(operation.moved, true) || operation.part == Part::responder) return;
  observer.on_first_byte(operation.team->spec.client, operation.context);
}

void State::note_coded(Operation& operation, const Coded& coded) {
  traffic.coded_bytes += coded.bytes;
  traffic.wire_bytes += coded.wire_bytes;
  if (coded.lossy) traffic.lossy_bytes += coded.bytes;
  observer.on_coded(operation.team->spec.client, coded);
}

void State::finish_step(Operation& operation, uint32_t index, const Status& status, uint64_t bytes) {
  const Step& step = operation.graph.steps[index];
  if (step.kind == StepKind::ending) return exports->finish_ending(operation, index, status.ok());
  if (step.kind == StepKind::fetch) return multicasts->end_fetch(operation, index, status, bytes);
  StepProgress& progress = operation.steps[index];
  progress.done = true;
  progress.moved = bytes;
  --operation.steps_left;
  if (!status.ok()) {
    operation.note_failure(status);
    progress.failed = true;
  }
  const TeamSpec& team = operation.team->spec;
  const uint32_t peer = step.kind == StepKind::pull ? step.peer : team.rank;
  const bool inside = step.kind != StepKind::multicast && (step.kind != StepKind::pull || team.members[peer].local);
  if (operation.part == Part::collective) {
    observer.on_step(team.client, operation.context, peer, status.ok() ? bytes : 0, inside);
  }
  for (const uint32_t next : step.next) {
    operation.steps[next].failed |= progress.failed;
    release_step(operation, next);
  }
  exports->offer_waiting(operation, progress.first_waiting);
  end_if_done(operation);
}

void State::release_step(Operation& operation, uint32_t step) {
  if (--operation.graph.steps[step].waits == 0) ready.emplace_back(&operation, step);
}

void State::end_if_done(Operation& operation) {
  if (operation.over || operation.steps_left > operation.endings_left) return;
  if (!std::exchange(operation.arrived, true) && operation.graph.ends != graph::Ends::alone)
    arrivals->arrive(operation);
  if (operation.steps_left > 0 || operation.exports_left > 0 || operation.awaits_reply) return;
  const Status status = operation.status.ok() ? operation.shortfall() : operation.status;
  if (status.ok() && operation.awaits_arrivals) return;
  end(operation, status);
}

void State::end(Operation& operation, const Status& status) {
  if (operation.over) return;
  operation.over = true;
  operation.status = status;
  ended.push_back(&operation);
}

void State::settle() {
  while (!ready.empty() || !answers.empty() || !ended.empty() || !near.empty()) {
    if (!ready.empty()) {
      const auto [operation, step] = ready.front();
      ready.pop_front();
      if (!operation->over) start_step(*operation, step);
    } else if (!answers.empty()) {
      auto [id, answer] = std::move(answers.front());
      answers.pop_front();
      calls->answer(id, std::move(answer));
    } else if (!near.empty()) {
      deliver_near();
    } else {
      Operation& operation = *ended.front();
      ended.pop_front();
      release(operation);
      if (operation.accesses == 0) retire(operation);  // else when the last one has ended
    }
  }
}

void State::release_next_in_order(const Operation& operation) {
  auto& in_order = operation.team->in_order;
  const bool first = !in_order.empty() && in_order.front() == &operation;
  std::erase(in_order, &operation);
  if (!first || in_order.empty()) return;
  Operation& next = *in_order.front();
  if (next.over) return;
  if (!operation.status.ok()) {
    next.note_failure(operation.status);
    for (StepProgress& step : next.steps) step.failed = true;
  }
  release_first_steps(next);
}

void State::retire(Operation& operation) {
  if (operation.graph.in_order) release_next_in_order(operation);
  const std::unique_ptr<Operation> gone = std::move(operations.extract(operation.id).mapped());
  Team& team = *gone->team;
  team.operations.erase(gone->key);
  const uint64_t number = gone->key.number;
  if (gone->part == Part::collective) imports->drop_arrived(team, number, number + 1);
  forget_if_unused(team);
  if (gone->part != Part::responder) return observer.on_finished(team.spec.client, gone->context, gone->status);
  calls->end_answer(*gone);
}

void State::release(Operation& operation) {
  local->forget(operation);
#define OFFPATH_ROOM(type, name) name->forget(operation);
#include "engine/rooms.def"
}

}  // namespace offpath::engine
