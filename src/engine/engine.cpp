// SPDX-License-Identifier: BSD-3-Clause
#include "engine/engine.hpp"

#include "engine/arrivals.hpp"
#include "engine/calls.hpp"
#include "engine/exports.hpp"
#include "engine/imports.hpp"
#include "engine/local.hpp"
#include "engine/multicasts.hpp"
#include "engine/peers.hpp"

#include <algorithm>

namespace offpath::engine {

using base::Result;
using base::Status;
using wire::Kind;
using wire::Message;

State::State(const Config& c, fabric::Fabric& f, Neighbours& n, Observer& o)
    : config(c),
      fabric(f),
      neighbours(n),
      observer(o),
      local(std::make_shared<Local>(*this)),
#define OFFPATH_ROOM(type, name) name(std::make_shared<type>(*this)),
#include "engine/rooms.def"
      rooms{
#define OFFPATH_ROOM(type, name) name.get(),
#include "engine/rooms.def"
      } {
}

Engine::Engine(const Config& config, fabric::Fabric& fabric, Neighbours& neighbours, Observer& observer)
    : state_(std::make_unique<State>(config, fabric, neighbours, observer)) {
  fabric.set_receiver(this);
}

Engine::~Engine() = default;

uint64_t Engine::refused_count() const { return state_->refused; }

void Engine::add_client(ClientId client, std::shared_ptr<memory::Port> memory) {
  state_->clients[client] = std::move(memory);
}

Result<TeamHandle> Engine::add_team(TeamSpec spec) {
  State& s = *state_;
  const TeamKey key{spec.id, spec.rank};
  const auto client = s.clients.find(spec.client);
  if (client == s.clients.end() || s.teams.contains(key)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "team member %u exists already", spec.rank);
  }
  // Several clients here are in it, or there are other teams on the same workers: what is long is kept once.
  const auto neighbour = s.teams.lower_bound({spec.id, 0});
  bool alike = neighbour != s.teams.end() && neighbour->first.id == spec.id &&
               spec.members.share(neighbour->second->spec.members);
  for (auto other = s.teams.begin(); !alike && other != s.teams.end(); ++other) {
    alike = spec.members.share(other->second->spec.members);
  }
  auto team = std::make_shared<Team>(spec.members.size());
  team->handle = s.next_id++;
  team->memory = client->second;
  team->peers.assign(spec.members.workers().size(), -1);
  team->lost.assign(spec.members.size(), 0);
  team->spec = std::move(spec);
  s.teams[key] = team;
  s.team_by_handle[team->handle] = team;
  s.peers->arrive(key);
  s.settle();
  return team->handle;
}

void Engine::remove_team(TeamHandle handle) {
  State& s = *state_;
  const auto it = s.team_by_handle.find(handle);
  if (it == s.team_by_handle.end()) return;
  const std::shared_ptr<Team> team = it->second;
  s.team_by_handle.erase(it);
  team->removed = true;
  s.forget_if_unused(*team);
}

void Engine::give_up_team(TeamHandle handle) {
  State& s = *state_;
  const auto it = s.team_by_handle.find(handle);
  if (it == s.team_by_handle.end()) return;
  s.peers->give_up(*it->second);
  s.settle();
}

void State::forget_if_unused(const Team& team) {
  if (!team.removed || !team.unused()) return;
  const auto it = teams.find({team.spec.id, team.spec.rank});
  if (it == teams.end()) return;
  const std::shared_ptr<Team> gone = std::move(it->second);
  teams.erase(it);
  peers->depart(gone);
}

void Engine::remove_client(ClientId client, Loss how) {
  State& s = *state_;
  std::vector<std::shared_ptr<Team>> gone;
  for (const auto& [key, team] : s.teams) {
    if (team->spec.client == client) gone.push_back(team);
  }
  for (const auto& team : gone) {
    Message lost = about(Kind::lost, *team, wire::Channel::collectives, wire::kNoOperation, team->spec.rank, 0);
    lost.status = team->obituary = obituary_of(how);
    const bool used = team->said_hello;
    const bool unfinished = !team->operations.empty() ||
                            std::ranges::any_of(s.rooms, [&](const Room* room) { return room->is_awaited(*team); });
    for (const auto& [key, operation] : team->operations) {
      s.release(*operation);
      s.operations.erase(operation->id);
    }
    team->operations.clear();
    for (lost.to = 0; used && lost.to < team->spec.members.size(); ++lost.to) {
      const bool neighbour = team->spec.members[lost.to].local;
      // A clean departure of a process needs no obituary: nobody waits for us.
      const bool concerned = unfinished || neighbour || how != Loss::process;
      if (lost.to != team->spec.rank && !team->lost[lost.to] && concerned) s.peers->send(*team, lost.to, lost);
    }
    team->abandoned = true;
    s.team_by_handle.erase(team->handle);
    s.teams.erase({team->spec.id, team->spec.rank});
    s.peers->depart(team);
  }
  s.clients.erase(client);
  s.settle();
}

Operation& State::add_operation(const std::shared_ptr<Team>& team, OperationKey key, Part part, Graph graph,
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

void State::release_first_steps(Operation& operation) {
  for (uint32_t step = 0; step < operation.own_steps; ++step) {  // what the engine added has begun
    if (operation.graph.steps[step].waits == 0) ready.emplace_back(&operation, step);
  }
}

// Queues the steps that wait for nothing and serves those who have asked before.
void State::start(Operation& operation) {
  auto& in_order = operation.team->in_order;
  if (operation.graph.in_order) in_order.push_back(&operation);
  if (!operation.graph.in_order || in_order.front() == &operation) release_first_steps(operation);
  if (operation.graph.ends != graph::Ends::alone) arrivals->begin(operation);
  exports->begin(operation);
  end_if_done(operation);
}

void Engine::post(TeamHandle handle, uint64_t sequence, Graph graph, uint64_t context, const Status& spoilt) {
  State& s = *state_;
  const auto found = s.team_by_handle.find(handle);
  if (found == s.team_by_handle.end()) return;
  const std::shared_ptr<Team> team = found->second;
  if (!spoilt.ok()) graph.begin_with(graph.copy({}, {}, 0));
  Operation& operation = s.add_operation(team, {.number = sequence}, Part::collective, std::move(graph), context);
  if (!spoilt.ok()) {
    operation.note_failure(spoilt);
    for (StepProgress& step : operation.steps) step.failed = true;
  }
  s.imports->drop_arrived(*team, team->next_sequence, sequence);
  team->next_sequence = sequence + 1;
  team->exchange.for_each_kept(sequence, [&](uint32_t member) { operation.note_begun(member); });
  if (team->broken) {
    team->exchange.take_pulls(operation.key);
    const auto is_lost = [](uint8_t how) { return how != 0; };
    const auto lost = std::find_if(team->lost.begin(), team->lost.end(), is_lost) - team->lost.begin();
    s.peers->fail_for_loss(operation, static_cast<uint32_t>(lost));
  } else {
    s.peers->say_hello(*team);
    s.start(operation);
  }
  s.settle();
}

bool Engine::progress() {
  State& s = *state_;
  bool busy = s.fabric.progress() || !s.answers.empty();
  busy |= s.reap();
  busy |= s.sender.send_waiting();
#define OFFPATH_ROOM(type, name) busy |= s.name->progress();
#include "engine/rooms.def"
  s.settle();
  busy |= s.sender.flush_all();
  busy |= s.local->progress();
  busy |= s.sender.flush_all();
  return busy;
}

uint64_t Engine::wait_ns() {
  uint64_t wait = UINT64_MAX;
#define OFFPATH_ROOM(type, name) wait = std::min(wait, state_->name->wait_ns());
#include "engine/rooms.def"
  return wait;
}

uint64_t Engine::rest_ns() const {
  uint64_t rest = 0;
  for (const Room* room : state_->rooms) rest = std::max(rest, room->rest_ns());
  return rest;
}

uint64_t Engine::window() const {
  const uint64_t bytes = state_->imports->window();
  return bytes == UINT64_MAX ? 0 : bytes;
}

const Traffic& Engine::traffic() const { return state_->traffic; }

bool Engine::expects(uint64_t bytes) const {
  return state_->exports->bytes_left() >= bytes || state_->imports->bytes_left() >= bytes;
}

void Engine::on_message(fabric::Bytes header, fabric::Bytes payload) { state_->receive(header, payload); }

void Engine::on_fetched(uint64_t context, bool success) { state_->imports->on_fetched(context, success); }

void Engine::on_peer_lost(fabric::Peer peer) { state_->peers->lose_peer(peer); }

void Engine::on_sent(uint64_t context, bool) {
  State& s = *state_;
  auto* chunk = reinterpret_cast<Chunk*>(context);
  if (chunk == nullptr) return;  // an address
  if (chunk->carrier != nullptr) chunk->carrier->on_sent(chunk->transfer);
  const uint64_t access = std::exchange(chunk->access, 0);
  s.chunks.give_back(chunk);
  if (access != 0) s.end_access(access, {});
}

void Engine::on_announced(fabric::Bytes header, size_t payload_bytes, fabric::Announced handle) {
  State& s = *state_;
  const auto message = wire::decode(header);
  const bool carries = message.ok() && payload_of(message.value().kind) != Payload::none;
  if (!carries || payload_bytes > s.config.chunk_bytes) {
    s.refuse_message("an announced payload where none belongs");
    s.fabric.drop(handle);
    return;
  }
  s.imports->announce(message.value(), payload_bytes, handle);
}

}  // namespace offpath::engine
