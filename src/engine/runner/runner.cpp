// SPDX-License-Identifier: BSD-3-Clause
#include "engine/runner/runner.hpp"

namespace offpath::engine {

using base::Status;

// Queues the steps that wait for nothing and serves those who have asked before.
void Runner::start(Operation& operation) {
  auto& in_order = operation.team->in_order;
  if (operation.graph.in_order) in_order.push_back(&operation);
  if (!operation.graph.in_order || in_order.front() == &operation) release_first_steps(operation);
  rooms_.begin(operation);
  end_if_done(operation);
}

void Runner::release_first_steps(Operation& operation) {
  for (uint32_t step = 0; step < operation.own_steps; ++step) {  // what rooms have added has begun
    if (operation.graph.steps[step].waits == 0) ready_.emplace_back(&operation, step);
  }
}

void Runner::add_step(Operation& operation, Step step) {
  ready_.emplace_back(&operation, static_cast<uint32_t>(operation.steps.size()));
  operation.graph.steps.push_back(std::move(step));
  operation.steps.emplace_back();
  ++operation.steps_left;
}

void Runner::finish_step(Operation& operation, uint32_t index, const Status& status, uint64_t bytes) {
  StepProgress& progress = operation.steps[index];
  progress.done = true;
  progress.moved = bytes;
  --operation.steps_left;
  if (index >= operation.own_steps) return rooms_.end_step(operation, index, status, bytes);
  if (!status.ok()) {
    operation.note_failure(status);
    progress.failed = true;
  }
  const Step& step = operation.graph.steps[index];
  const TeamSpec& team = operation.team->spec;
  const uint32_t peer = step.kind == StepKind::pull ? step.peer : team.rank;
  const bool inside = step.kind != StepKind::multicast && (step.kind != StepKind::pull || team.members[peer].local);
  if (operation.part == Part::collective) {
    core_.observer.on_step(team.client, operation.context, peer, status.ok() ? bytes : 0, inside);
  }
  for (const uint32_t next : step.next) {
    operation.steps[next].failed |= progress.failed;
    release_step(operation, next);
  }
  if (progress.first_waiting != kNoStep) rooms_.offer(operation, progress.first_waiting);
  end_if_done(operation);
}

void Runner::release_step(Operation& operation, uint32_t step) {
  if (--operation.graph.steps[step].waits == 0) ready_.emplace_back(&operation, step);
}

void Runner::end_if_done(Operation& operation) {
  if (operation.over || operation.steps_left > operation.endings_left) return;
  if (!std::exchange(operation.arrived, true) && operation.graph.ends != graph::Ends::alone) rooms_.arrive(operation);
  if (operation.steps_left > 0 || operation.exports_left > 0 || operation.awaits_reply) return;
  const Status status = operation.status.ok() ? operation.shortfall() : operation.status;
  if (status.ok() && operation.awaits_arrivals) return;
  end(operation, status);
}

void Runner::end(Operation& operation, const Status& status) {
  if (operation.over) return;
  operation.over = true;
  operation.status = status;
  ended_.push_back(&operation);
}

void Runner::settle() {
  for (;;) {
    if (!ready_.empty()) {
      const auto [operation, step] = ready_.front();
      ready_.pop_front();
      if (!operation->over) rooms_.begin_step(*operation, step);
      continue;
    }
    if (put_off_ > 0) {
      --put_off_;
      rooms_.go_on();
      continue;
    }
    if (ended_.empty()) return;
    Operation& operation = *ended_.front();
    ended_.pop_front();
    rooms_.forget(operation);
    if (operation.accesses == 0) retire(operation);  // else when the last one has ended
  }
}

void Runner::release_next_in_order(const Operation& operation) {
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

void Runner::retire(Operation& operation) {
  if (operation.graph.in_order) release_next_in_order(operation);
  rooms_.end(core_.take(operation));
}

}  // namespace offpath::engine
