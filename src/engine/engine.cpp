// SPDX-License-Identifier: BSD-3-Clause
#include "engine/engine.hpp"

#include "base/random.hpp"
#include "engine/state.hpp"

namespace offpath::engine {

using base::Result;
using base::Status;
using wire::Kind;
using wire::Message;

Engine::Engine(const Config& config, fabric::Fabric& fabric, Neighbours& neighbours, Observer& observer)
    : state_(std::make_unique<State>(config, fabric, neighbours, observer)) {
  fabric.set_receiver(this);
}

Engine::~Engine() = default;

uint64_t Engine::refused_count() const { return state_->refused; }

void Engine::add_client(ClientId client, std::shared_ptr<memory::Memory> memory) {
  state_->clients[client].memory = std::move(memory);
}

Result<TeamHandle> Engine::add_team(TeamSpec spec) {
  State& s = *state_;
  const TeamKey key{spec.id, spec.rank};
  const auto client = s.clients.find(spec.client);
  if (client == s.clients.end() || s.teams.contains(key)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "team member %u exists already", spec.rank);
  }
  auto team = std::make_shared<Team>();
  team->handle = s.next_id++;
  team->memory = client->second.memory;
  team->peers.assign(spec.members.size(), -1);
  team->lost.assign(spec.members.size(), 0);
  team->spec = std::move(spec);
  s.teams[key] = team;
  s.team_by_handle[team->handle] = team;
  if (const auto early = s.early.find(key); early != s.early.end()) {
    const std::vector<Message> messages = std::move(early->second);
    s.early.erase(early);
    std::erase(s.early_order, key);
    s.early_count -= messages.size();
    for (const Message& message : messages) s.handle_pull(message);
  }
  return team->handle;
}

void Engine::remove_team(TeamHandle handle) {
  State& s = *state_;
  const auto it = s.team_by_handle.find(handle);
  if (it == s.team_by_handle.end()) return;
  const std::shared_ptr<Team> team = it->second;
  s.team_by_handle.erase(it);
  team->removed = true;
  if (team->operations.empty()) s.teams.erase({team->spec.id, team->spec.rank});
}

void Engine::remove_client(ClientId client) {
  State& s = *state_;
  std::vector<std::shared_ptr<Team>> gone;
  for (const auto& [key, team] : s.teams) {
    if (team->spec.client == client) gone.push_back(team);
  }
  for (const auto& team : gone) {
    Message lost;
    lost.kind = Kind::lost;
    lost.team = team->spec.id;
    lost.from = team->spec.rank;
    lost.sequence = team->next_sequence;
    lost.status = OFFPATH_ERR_PEER_LOST;
    const bool used = team->said_hello;
    const bool unfinished = !team->operations.empty() || !team->parked.empty();
    while (!team->operations.empty()) {
      Operation& operation = *team->operations.begin()->second;
      s.release(operation);
      team->operations.erase(team->operations.begin());
      s.operations.erase(operation.id);
    }
    for (lost.to = 0; used && lost.to < team->spec.members.size(); ++lost.to) {
      const bool neighbour = team->spec.members[lost.to].local;
      // A clean departure needs no obituary: nobody waits for us.
      if (lost.to != team->spec.rank && !team->lost[lost.to] && (unfinished || neighbour)) s.send(*team, lost.to, lost);
    }
    s.team_by_handle.erase(team->handle);
    s.teams.erase({team->spec.id, team->spec.rank});
  }
  s.clients.erase(client);
}

void Engine::post(TeamHandle handle, uint64_t sequence, Graph graph, uint64_t context) {
  State& s = *state_;
  const auto found = s.team_by_handle.find(handle);
  if (found == s.team_by_handle.end()) return;
  const std::shared_ptr<Team>& team = found->second;
  auto owned = std::make_unique<Operation>();
  Operation& operation = *owned;
  operation.id = s.next_id++;
  operation.team = team;
  operation.sequence = sequence;
  operation.context = context;
  operation.graph = std::move(graph);
  operation.graph.seal();
  operation.step_done.assign(operation.graph.steps.size(), 0);
  operation.exports.resize(operation.graph.exports.size());
  operation.steps_left = static_cast<uint32_t>(operation.graph.steps.size());
  operation.exports_left = static_cast<uint32_t>(operation.graph.exports.size());
  s.operations[operation.id] = std::move(owned);
  team->operations[sequence] = &operation;
  team->next_sequence = sequence + 1;

  for (uint32_t rank = 0; rank < team->lost.size(); ++rank) {
    if (team->lost[rank] == 0) continue;
    return s.fail_for_loss(operation, rank);
  }
  s.say_hello(*team);

  const uint64_t id = operation.id;
  const auto [first, last] = team->parked.equal_range(sequence);
  std::vector<Message> waiting;
  for (auto it = first; it != last; ++it) waiting.push_back(it->second);
  team->parked.erase(first, last);
  for (const Message& message : waiting) {
    if (s.operations.contains(id)) s.serve(operation, message);  // serving can end it
  }
  for (uint32_t step = 0; s.operations.contains(id) && step < operation.graph.steps.size(); ++step) {
    if (operation.graph.steps[step].waits == 0 && !operation.step_done[step]) s.start_step(operation, step);
  }
  if (s.operations.contains(id)) s.finish_if_done(operation);
}

// The first operation of a team connects it, so that each member notices the death of each other one.
void Engine::State::say_hello(Team& team) {
  if (team.said_hello) return;
  team.said_hello = true;
  Message hello;
  hello.kind = Kind::hello;
  hello.team = team.spec.id;
  const auto size = static_cast<uint32_t>(team.spec.members.size());
  for (uint32_t i = 1; i < size; ++i) {
    const uint32_t rank = (team.spec.rank + i) % size;
    if (!team.spec.members[rank].local) send(team, rank, hello);
  }
}

void Engine::State::start_step(Operation& operation, uint32_t index) {
  const Step& step = operation.graph.steps[index];
  if (step.bytes == 0) return finish_step(operation, index);
  if (step.kind == StepKind::copy) {
    copies.push_back({operation.id, index, 0, operation.team->memory, step.source, step.target, step.bytes, 0});
    return;
  }
  uint64_t pull_id = 0;
  while (pull_id == 0 || pulls.contains(pull_id)) pull_id = base::random_u64();
  pulls[pull_id] = Pull{.operation = &operation, .step = index};
  Message message;
  message.kind = Kind::pull;
  message.team = operation.team->spec.id;
  message.sequence = operation.sequence;
  message.from = step.peer;
  message.to = operation.team->spec.rank;
  message.tag = step.tag;
  message.pull_id = pull_id;
  message.bytes = step.bytes;
  send(*operation.team, step.peer, message);
}

void Engine::State::finish_step(Operation& operation, uint32_t index) {
  if (operation.step_done[index]) return;
  operation.step_done[index] = 1;
  --operation.steps_left;
  for (const uint32_t next : operation.graph.steps[index].next) {
    if (--operation.graph.steps[next].waits == 0) start_step(operation, next);
  }
  if (!operation.graph.ordered_exports) return;
  for (uint32_t i = 0; i < operation.exports.size(); ++i) {
    const bool ready = operation.graph.exports[i].after == index;
    if (ready && operation.exports[i].state == ExportState::requested) hand_out(operation, i);
  }
}

void Engine::State::resolve_export(Operation& operation, uint32_t index) {
  if (operation.exports[index].state == ExportState::resolved) return;
  operation.exports[index].state = ExportState::resolved;
  --operation.exports_left;
}

void Engine::State::finish_if_done(Operation& operation) {
  if (operation.steps_left == 0 && operation.exports_left == 0) end_operation(operation, operation.status);
}

void Engine::State::end_operation(Operation& operation, Status status) {
  release(operation);
  const std::shared_ptr<Team> team = operation.team;
  const uint64_t context = operation.context;
  team->operations.erase(operation.sequence);
  operations.erase(operation.id);
  if (team->removed && team->operations.empty()) teams.erase({team->spec.id, team->spec.rank});
  observer.on_finished(team->spec.client, context, status);
}

void Engine::State::release(Operation& operation) {
  std::erase_if(pulls, [&](const auto& entry) { return entry.second.operation == &operation; });
  std::erase_if(copies, [&](const LocalCopy& copy) { return copy.operation_id == operation.id; });
  for (auto it = streams.begin(); it != streams.end();) {
    if (it->second.operation == &operation) it->second.operation = nullptr;
    it = it->second.operation == nullptr && it->second.in_flight == 0 ? streams.erase(it) : std::next(it);
  }
}

bool Engine::progress() {
  State& s = *state_;
  bool busy = s.fabric.progress();
  busy |= s.report_unreachable();
  busy |= s.place_announced();
  busy |= s.move_streams();
  busy |= s.move_local_copies();
  return busy;
}

void Engine::on_neighbour_message(const Message& message) { state_->handle(message); }

}  // namespace offpath::engine
