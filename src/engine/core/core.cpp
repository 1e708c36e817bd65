// SPDX-License-Identifier: BSD-3-Clause
#include "engine/core/core.hpp"

#include "base/log.hpp"

#include <utility>

namespace offpath::engine {

using base::Result;
using base::Status;

Result<std::shared_ptr<Team>> Core::add_team(TeamSpec spec) {
  const TeamKey key{spec.id, spec.rank};
  const auto client = clients.find(spec.client);
  if (client == clients.end() || teams.contains(key)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "team member %u exists already", spec.rank);
  }
  // Several clients here are in it, or there are other teams on the same workers: what is long is kept once.
  const auto neighbour = teams.lower_bound({spec.id, 0});
  bool alike =
      neighbour != teams.end() && neighbour->first.id == spec.id && spec.members.share(neighbour->second->spec.members);
  for (auto other = teams.begin(); !alike && other != teams.end(); ++other) {
    alike = spec.members.share(other->second->spec.members);
  }
  auto team = std::make_shared<Team>(spec.members.size());
  team->handle = next_id++;
  team->memory = client->second;
  team->peers.assign(spec.members.workers().size(), -1);
  team->lost.assign(spec.members.size(), 0);
  team->spec = std::move(spec);
  teams[key] = team;
  team_by_handle[team->handle] = team;
  return team;
}

std::shared_ptr<Team> Core::find_team(const wire::TeamId& id, uint32_t rank) const {
  const auto it = teams.find({id, rank});
  return it == teams.end() ? nullptr : it->second;
}

std::shared_ptr<Team> Core::take_unused(const Team& team) {
  if (!team.removed || !team.unused()) return nullptr;
  const auto it = teams.find({team.spec.id, team.spec.rank});
  if (it == teams.end()) return nullptr;
  const std::shared_ptr<Team> gone = std::move(it->second);
  teams.erase(it);
  return gone;
}

Operation& Core::add_operation(const std::shared_ptr<Team>& team, OperationKey key, Part part, Graph graph,
                               uint64_t context) {
  auto owned = std::make_unique<Operation>();
  Operation& operation = *owned;
  operation.id = next_id++;
  operation.team = team;
  operation.key = key;
  operation.part = part;
  operation.context = context;
  operation.graph = std::move(graph);
  operation.graph.seal();
  operation.steps.resize(operation.graph.steps.size());
  operation.exports.resize(operation.graph.exports.size());
  operation.steps_left = static_cast<uint32_t>(operation.graph.steps.size());
  operation.exports_left = static_cast<uint32_t>(operation.graph.exports.size());
  operation.own_steps = operation.steps_left;
  operation.awaits_reply = part == Part::requester;
  for (const Layout& layout : operation.graph.layouts) operation.layouts.push_back(memory::index_layout(layout));
  operation.scratch = operation.graph.scratch;
  if (operation.graph.scratch_bytes > 0) operation.scratch = doer.scratch(operation.graph.scratch_bytes);
  operations[operation.id] = std::move(owned);
  team->operations[key] = &operation;
  return operation;
}

std::unique_ptr<Operation> Core::take(Operation& operation) {
  std::unique_ptr<Operation> gone = std::move(operations.extract(operation.id).mapped());
  gone->team->operations.erase(gone->key);
  return gone;
}

void Core::note_moved(Operation& operation, uint64_t bytes) {
  if (bytes == 0 || std::exchange(operation.moved, true) || operation.part == Part::responder) return;
  observer.on_first_byte(operation.team->spec.client, operation.context);
}

Waits Core::look_for(const Operation& operation, uint32_t rank) const {
  if (operation.has_begun(rank)) return Waits::sends;
  const auto here = find_team(operation.team->spec.id, rank);
  if (here == nullptr) return Waits::silent;
  return here->next_sequence > operation.key.number ? Waits::sends : Waits::not_posted;
}

void Core::refuse_message(const char* why) {
  if (++refused == 1) base::log_write(base::LogLevel::warn, "refused a message: %s", why);
}

}  // namespace offpath::engine
