// SPDX-License-Identifier: BSD-3-Clause
#include "engine/engine.hpp"

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
  state_->clients[client] = std::move(memory);
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
  team->memory = client->second;
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
    for (const auto& [sequence, operation] : team->operations) {
      s.release(*operation);
      s.operations.erase(operation->id);
    }
    team->operations.clear();
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
  operation.steps.resize(operation.graph.steps.size());
  operation.exports.resize(operation.graph.exports.size());
  operation.steps_left = static_cast<uint32_t>(operation.graph.steps.size());
  operation.exports_left = static_cast<uint32_t>(operation.graph.exports.size());
  for (const Layout& layout : operation.graph.layouts) operation.layouts.push_back(memory::index_layout(layout));
  if (operation.graph.scratch_bytes > 0) operation.scratch = s.scratch->take(operation.graph.scratch_bytes);
  s.operations[operation.id] = std::move(owned);
  team->operations[sequence] = &operation;
  team->next_sequence = sequence + 1;

  const auto [first, last] = team->parked.equal_range(sequence);
  std::vector<Message> waiting;
  for (auto it = first; it != last; ++it) waiting.push_back(it->second);
  team->parked.erase(first, last);
  if (team->broken) {
    const auto lost = std::find(team->lost.begin(), team->lost.end(), 1) - team->lost.begin();
    s.fail_for_loss(operation, static_cast<uint32_t>(lost));
    return s.settle();
  }
  s.say_hello(*team);
  for (uint32_t step = 0; step < operation.steps.size(); ++step) {
    if (operation.graph.steps[step].waits == 0) s.ready.emplace_back(&operation, step);
  }
  for (const Message& message : waiting) s.serve(operation, message);
  s.end_if_done(operation);
  s.settle();
}

bool Engine::progress() {
  State& s = *state_;
  bool busy = s.fabric.progress();
  busy |= s.report_unreachable();
  busy |= s.place_announced();
  busy |= s.move_streams();
  busy |= s.flush_all();
  busy |= s.move_local();
  busy |= s.flush_all();
  return busy;
}

void Engine::on_neighbour_message(const Message& message) {
  state_->handle(message);
  state_->settle();
}

void Engine::on_message(fabric::Bytes header, fabric::Bytes payload) { state_->receive(header, payload); }

}  // namespace offpath::engine
