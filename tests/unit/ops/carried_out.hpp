// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "graph/request.hpp"

namespace offpath::testing {

// What becomes of an answer that is an update: done as an engine does on memory that answers at once.
inline graph::Answer carried_out(graph::Answer answer) {
  if (answer.kind != graph::Answer::Kind::update) return answer;
  graph::Update& update = *answer.update;
  graph::Answer reply;
  update.before.resize(update.bytes);
  if (update.reads) reply.status = update.memory->read(update.before.data(), update.address, update.bytes).status();
  const uint8_t* after = reply.status.ok() ? update.apply(update.before.data()) : nullptr;
  if (after != nullptr) reply.status = update.memory->write(update.address, after, update.bytes).status();
  if (reply.status.ok() && update.replies) reply.payload = update.before;
  update.on_ended();
  return reply;
}

}  // namespace offpath::testing
