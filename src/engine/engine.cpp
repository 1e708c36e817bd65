// SPDX-License-Identifier: BSD-3-Clause
#include "engine/engine.hpp"

#include "engine/parts.hpp"

#include <algorithm>

namespace offpath::engine {

using base::Result;
using base::Status;
using wire::Kind;
using wire::Message;

Engine::Engine(const Config& config, fabric::Fabric& fabric, Neighbours& neighbours, Observer& observer)
    : parts_(std::make_unique<Parts>(config, fabric, neighbours, observer)) {
  fabric.set_receiver(this);
}

Engine::~Engine() = default;

uint64_t Engine::refused_count() const { return parts_->core.refused; }

void Engine::add_client(ClientId client, std::shared_ptr<memory::Port> memory) {
  parts_->core.clients[client] = std::move(memory);
}

Result<TeamHandle> Engine::add_team(TeamSpec spec) {
  const auto team = parts_->core.add_team(std::move(spec));
  if (!team.ok()) return team.status();
  const TeamHandle handle = team.value()->handle;
  parts_->peers.arrive({team.value()->spec.id, team.value()->spec.rank});
  parts_->runner.settle();
  return handle;
}

void Engine::remove_team(TeamHandle handle) {
  Parts& parts = *parts_;
  const auto it = parts.core.team_by_handle.find(handle);
  if (it == parts.core.team_by_handle.end()) return;
  const std::shared_ptr<Team> team = it->second;
  parts.core.team_by_handle.erase(it);
  team->removed = true;
  parts.peers.forget_if_unused(*team);
}

void Engine::give_up_team(TeamHandle handle) {
  const auto it = parts_->core.team_by_handle.find(handle);
  if (it == parts_->core.team_by_handle.end()) return;
  parts_->peers.give_up(*it->second);
  parts_->runner.settle();
}

void Engine::remove_client(ClientId client, Loss how) {
  Parts& parts = *parts_;
  std::vector<std::shared_ptr<Team>> gone;
  for (const auto& [key, team] : parts.core.teams) {
    if (team->spec.client == client) gone.push_back(team);
  }
  for (const auto& team : gone) {
    Message lost = about(Kind::lost, *team, wire::Channel::collectives, wire::kNoOperation, team->spec.rank, 0);
    lost.status = team->obituary = obituary_of(how);
    const bool used = team->said_hello;
    const bool unfinished = !team->operations.empty() ||
                            std::ranges::any_of(parts.rooms, [&](const Room* room) { return room->is_awaited(*team); });
    for (const auto& [key, operation] : team->operations) {
      parts.forget(*operation);
      parts.core.operations.erase(operation->id);
    }
    team->operations.clear();
    for (lost.to = 0; used && lost.to < team->spec.members.size(); ++lost.to) {
      const bool neighbour = team->spec.members[lost.to].local;
      // A clean departure of a process needs no obituary: nobody waits for us.
      const bool concerned = unfinished || neighbour || how != Loss::process;
      if (lost.to != team->spec.rank && !team->lost[lost.to] && concerned) parts.peers.send(*team, lost.to, lost);
    }
    team->abandoned = true;
    parts.core.team_by_handle.erase(team->handle);
    parts.core.teams.erase({team->spec.id, team->spec.rank});
    parts.peers.depart(team);
  }
  parts.core.clients.erase(client);
  parts.runner.settle();
}

void Engine::post(TeamHandle handle, uint64_t sequence, Graph graph, uint64_t context, const Status& spoilt) {
  Parts& parts = *parts_;
  const auto found = parts.core.team_by_handle.find(handle);
  if (found == parts.core.team_by_handle.end()) return;
  const std::shared_ptr<Team> team = found->second;
  if (!spoilt.ok()) graph.begin_with(graph.copy({}, {}, 0));
  Operation& operation =
      parts.core.add_operation(team, {.number = sequence}, Part::collective, std::move(graph), context);
  if (!spoilt.ok()) {
    operation.note_failure(spoilt);
    for (StepProgress& step : operation.steps) step.failed = true;
  }
  parts.imports.drop_arrived(*team, team->next_sequence, sequence);
  team->next_sequence = sequence + 1;
  team->exchange.for_each_kept(sequence, [&](uint32_t member) { operation.note_begun(member); });
  if (team->broken) {
    team->exchange.take_pulls(operation.key);
    const auto is_lost = [](uint8_t how) { return how != 0; };
    const auto lost = std::find_if(team->lost.begin(), team->lost.end(), is_lost) - team->lost.begin();
    parts.peers.fail_for_loss(operation, static_cast<uint32_t>(lost));
  } else {
    parts.peers.say_hello(*team);
    parts.runner.start(operation);
  }
  parts.runner.settle();
}

void Engine::post_request(TeamHandle handle, Request request, uint64_t context) {
  const auto found = parts_->core.team_by_handle.find(handle);
  if (found == parts_->core.team_by_handle.end()) return;
  parts_->calls.post(found->second, std::move(request), context);
  parts_->runner.settle();
}

void Engine::set_responder(Responder* responder) { parts_->calls.set_responder(responder); }

void Engine::answer(RequestId request, Answer answer) { parts_->calls.answer(request, std::move(answer)); }

bool Engine::progress() {
  Parts& parts = *parts_;
  bool busy = parts.fabric.progress() || parts.calls.has_answers();
  busy |= parts.runner.reap();
  busy |= parts.sender.send_waiting();
#define OFFPATH_ROOM(type, name) busy |= parts.name.progress();
#include "engine/rooms/rooms.def"
  parts.runner.settle();
  busy |= parts.sender.flush_all();
  busy |= parts.local.work();
  busy |= parts.sender.flush_all();
  return busy;
}

uint64_t Engine::wait_ns() {
  uint64_t wait = UINT64_MAX;
#define OFFPATH_ROOM(type, name) wait = std::min(wait, parts_->name.wait_ns());
#include "engine/rooms/rooms.def"
  return wait;
}

uint64_t Engine::rest_ns() const {
  uint64_t rest = 0;
  for (const Room* room : parts_->rooms) rest = std::max(rest, room->rest_ns());
  return rest;
}

uint64_t Engine::window() const {
  const uint64_t bytes = parts_->imports.window();
  return bytes == UINT64_MAX ? 0 : bytes;
}

const Traffic& Engine::traffic() const { return parts_->core.traffic; }

bool Engine::expects(uint64_t bytes) const {
  return parts_->exports.bytes_left() >= bytes || parts_->imports.bytes_left() >= bytes;
}

bool Engine::senders_wait() const { return parts_->sender.owes(); }

void Engine::tell_senders() { parts_->sender.say_owed(); }

size_t Engine::unconfirmed() const { return parts_->peers.unconfirmed(); }

bool Engine::awaits() const { return !parts_->core.operations.empty() || parts_->calls.open(); }

void Engine::watch(uint64_t now_ns) {
  parts_->exports.ask_for_endings();
  parts_->peers.watch(now_ns);
}

void Engine::on_neighbour_message(const Message& message, fabric::Bytes payload) {
  parts_->messages.dispatch(message, payload);
  parts_->runner.settle();
}

void Engine::on_neighbour_offer(uint64_t pull_id, std::shared_ptr<memory::Port> memory, uint64_t address,
                                uint64_t bytes) {
  parts_->imports.take_offer(pull_id, {std::move(memory), address}, bytes);
  parts_->runner.settle();
}

void Engine::on_message(fabric::Bytes header, fabric::Bytes payload) { parts_->messages.receive(header, payload); }

void Engine::on_fetched(uint64_t context, bool success) { parts_->imports.on_fetched(context, success); }

void Engine::on_peer_lost(fabric::Peer peer) { parts_->peers.lose_peer(peer); }

void Engine::on_sent(uint64_t context, bool) {
  Parts& parts = *parts_;
  auto* chunk = reinterpret_cast<Chunk*>(context);
  if (chunk == nullptr) return;  // an address
  if (chunk->carrier != nullptr) chunk->carrier->on_sent(chunk->transfer);
  const uint64_t access = std::exchange(chunk->access, 0);
  parts.chunks.give_back(chunk);
  if (access != 0) parts.runner.end_access(access, {});
}

void Engine::on_announced(fabric::Bytes header, size_t payload_bytes, fabric::Announced handle) {
  Parts& parts = *parts_;
  const auto message = wire::decode(header);
  const bool carries = message.ok() && payload_of(message.value().kind) != Payload::none;
  if (!carries || payload_bytes > parts.config.chunk_bytes) {
    parts.core.refuse_message("an announced payload where none belongs");
    parts.fabric.drop(handle);
    return;
  }
  parts.imports.announce(message.value(), payload_bytes, handle);
}

}  // namespace offpath::engine
