// SPDX-License-Identifier: BSD-3-Clause
// How much of a block its receiver asks for, and when for more (turns.hpp).
#include "engine/coding/compression.hpp"
#include "engine/rooms/imports.hpp"
#include "engine/rooms/peers.hpp"

namespace offpath::engine {

using wire::Kind;
using wire::Message;

Message Imports::pull_of(uint64_t pull_id, uint64_t upto) const {
  const Pull& pull = pulls_.at(pull_id);
  const Operation& operation = *pull.operation;
  const Step& step = operation.graph.steps[pull.step];
  Message message = about(Kind::pull, *operation.team, operation.incoming(), operation.key.number, step.peer,
                          operation.team->spec.rank, step.tag);
  message.bytes = pull.limit;
  message.offset = upto;
  message.codecs = compression_.coder.readable();
  message.pull_id = pull_id;
  return message;
}

void Imports::give_turns() {
  while (const auto more = turns_.next()) {
    const Pull& pull = pulls_.at(more->id);
    peers_.send(*pull.operation->team, pull.operation->graph.steps[pull.step].peer, pull_of(more->id, more->upto));
  }
}

void Imports::note_turn(uint64_t pull_id, uint64_t bytes) {
  const Pull& pull = pulls_.at(pull_id);
  const Operation& operation = *pull.operation;
  turns_.arrive(pull_id, bytes, pull.total);
  const int64_t peer = operation.team->peer(operation.graph.steps[pull.step].peer);
  if (peer >= 0) senders_.insert(static_cast<fabric::Peer>(peer));
  unlooked_bytes_ += bytes;
  if (unlooked_bytes_ < turns_.look_bytes()) return;
  bool lost = false;
  for (const fabric::Peer sender : senders_) {
    const uint64_t disordered = fabric_.connection(sender).disordered;
    lost |= std::exchange(disordered_[sender], disordered) != disordered;
  }
  turns_.look(senders_.size(), lost);
  senders_.clear();
  unlooked_bytes_ = 0;
}

}  // namespace offpath::engine
