// SPDX-License-Identifier: BSD-3-Clause
#include "engine/parts.hpp"

namespace offpath::engine {

void Parts::begin(Operation& operation) {
  if (operation.graph.ends != graph::Ends::alone) arrivals.begin(operation);
  exports.begin(operation);
}

void Parts::begin_step(Operation& operation, uint32_t step) {
  switch (operation.graph.steps[step].kind) {
#define OFFPATH_STEP(kind, room) \
  case StepKind::kind:           \
    return room.begin_step(operation, step);
#include "engine/rooms/rooms.def"
    case StepKind::fetch:  // has begun when it was added
      break;
  }
}

void Parts::end_step(Operation& operation, uint32_t step, const base::Status& status, uint64_t bytes) {
  switch (operation.graph.steps[step].kind) {
#define OFFPATH_ADDED_STEP(kind, room) \
  case StepKind::kind:                 \
    return room.end_step(operation, step, status, bytes);
#include "engine/rooms/rooms.def"
    default:
      break;
  }
}

void Parts::forget(Operation& operation) {
#define OFFPATH_ROOM(type, name) name.forget(operation);
#include "engine/rooms/rooms.def"
}

void Parts::end(std::unique_ptr<Operation> operation) {
  Team& team = *operation->team;
  const uint64_t number = operation->key.number;
  if (operation->part == Part::collective) imports.drop_arrived(team, number, number + 1);
  peers.forget_if_unused(team);
  if (operation->part == Part::responder) return calls.end_answer(*operation);
  observer.on_finished(team.spec.client, operation->context, operation->status);
}

}  // namespace offpath::engine
