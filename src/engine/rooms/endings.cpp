// SPDX-License-Identifier: BSD-3-Clause
// Blocks that nobody will take. Members that were told lengths that do not match have graphs that do not match, and a
// member that exports a block would wait for ever for a pull that is never made. So a member that waits asks now and
// then, by a pull of nothing under a tag of its own. It gets an empty block when the other member has made all its
// pulls, and is refused as long as that may still make some. What was not asked for by then counts as taken, and who has
// made all its pulls has arrived.
#include "engine/rooms/exports.hpp"
#include "engine/rooms/peers.hpp"

namespace offpath::engine {

using wire::Message;

namespace {
constexpr size_t kEndingsAtATime = 16;  // operations of a team: many may wait for one late member
}

void Exports::ask_for_endings() {
  for (const auto& [team_key, team] : core_.teams) {
    size_t count = 0;
    for (const auto& [key, operation] : team->operations) {
      if (key.is_request() || operation->over) continue;
      if (ask_for_endings(*operation) && ++count == kEndingsAtATime) break;
    }
  }
  runner_.settle();
}

// What was sent unasked counts as taken, though nobody may want it.
void Exports::add_silent(const Operation& operation, std::set<uint32_t>& members) const {
  for (size_t i = 0; i < operation.exports.size(); ++i) {
    const Export& block = operation.graph.exports[i];
    if (operation.exports[i].state == ExportState::open && is_there(operation, block)) members.insert(block.peer);
  }
}

bool Exports::ask_for_endings(Operation& operation) {
  const Graph& graph = operation.graph;
  std::set<uint32_t> silent;
  for (const Room* room : rooms_) room->add_silent(operation, silent);
  for (size_t i = operation.own_steps; i < graph.steps.size(); ++i) {
    const bool asked = graph.steps[i].kind == StepKind::ending && !operation.steps[i].done;
    if (asked) silent.erase(graph.steps[i].peer);
  }
  for (const uint32_t peer : silent) {
    runner_.add_step(operation, {.kind = StepKind::ending, .peer = peer, .tag = kEndingTag});
    ++operation.endings_left;
  }
  return !silent.empty();
}

void Exports::answer_ending(Team& team, const Operation* operation, const Message& message) {
  if (operation == nullptr && team.broken && peers_.pass_loss_on(team, message.to, message.number)) return;
  const bool has_ended = operation == nullptr && message.number < team.next_sequence;
  const bool takes_no_more = operation != nullptr && operation->steps_left == operation->endings_left;
  if (has_ended || takes_no_more) return answer_empty(team, message.to, message.pull_id);
  refuse_pull(team, message.to, message.pull_id, OFFPATH_ERR_STATE);
}

void Exports::end_step(Operation& operation, uint32_t step, const base::Status& status, uint64_t) {
  const bool takes_no_more = status.ok();
  const uint32_t peer = operation.graph.steps[step].peer;
  --operation.endings_left;
  for (Room* room : rooms_) {
    if (takes_no_more) room->on_ended(operation, peer);
  }
  runner_.end_if_done(operation);
}

}  // namespace offpath::engine
