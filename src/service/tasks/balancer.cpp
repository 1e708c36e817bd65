// SPDX-License-Identifier: BSD-3-Clause
#include "service/tasks/balancer.hpp"

#include "base/clock.hpp"

#include <algorithm>

namespace offpath::service {

using base::Status;
using engine::ClientId;
using graph::Answer;

Balancer::Balancer(Mode mode, engine::Engine& engine, Tasks& tasks, graph::Responder& others,
                   std::function<bool()> has_time)
    : mode_(mode), engine_(engine), tasks_(tasks), others_(others), has_time_(std::move(has_time)) {
  tasks_.set_mover(this);
}

// Workers in the order in which the team names them: the same at all of them.
void Balancer::add_team(ClientId client, engine::TeamHandle handle, const engine::TeamSpec& team, uint32_t worker) {
  if (mode_ == Mode::off) return;
  const std::vector<engine::WorkerAddress>& workers = team.members.workers();
  const std::vector<uint32_t>& worker_of = team.members.worker_of();
  const auto is_own = [&](const engine::WorkerAddress& one) { return one.local && one.worker == worker; };
  const auto own = std::find_if(workers.begin(), workers.end(), is_own);
  if (own == workers.end()) return;  // a client that says what is not true
  const auto index_of_own = static_cast<uint32_t>(own - workers.begin());
  for (const uint32_t index : tasks::neighbours(index_of_own, static_cast<uint32_t>(workers.size()))) {
    const engine::WorkerAddress& there = workers[index];
    const std::string address = there.local ? "worker " + std::to_string(there.worker)
                                            : std::string(there.address.begin(), there.address.end());
    const auto first = std::find(worker_of.begin(), worker_of.end(), index);
    const auto rank = static_cast<uint32_t>(first - worker_of.begin());
    auto peer = std::find_if(peers_.begin(), peers_.end(), [&](const Peer& one) { return one.address == address; });
    if (peer == peers_.end()) {
      peers_.emplace_back();
      peer = std::prev(peers_.end());
      peer->address = address;
    }
    routes_.push_back({client, handle, team.context, rank, &*peer});
  }
}

void Balancer::remove_team(engine::TeamHandle handle) {
  std::erase_if(routes_, [&](const Route& route) { return route.handle == handle; });
}

void Balancer::lose_member(ClientId client, uint64_t team, uint32_t rank) {
  std::erase_if(routes_,
                [&](const Route& route) { return route.client == client && route.team == team && route.rank == rank; });
  std::vector<uint64_t> lost;
  for (const auto& [id, guest] : guests_) {
    if (guest.client == client && guest.team == team && guest.from == rank) lost.push_back(id);
  }
  for (const uint64_t id : lost) drop(id);
}

// The engine has let go of its requests. Where blocks were coming the fabric may still be writing: that room is not used again.
void Balancer::remove_client(ClientId client) {
  std::erase_if(routes_, [&](const Route& route) { return route.client == client; });
  std::erase_if(drops_, [&](const auto& entry) { return entry.first.client == client; });
  std::erase_if(askers_, [&](const Asker& asker) { return asker.client == client; });
  std::erase_if(questions_, [&](const auto& entry) {
    if (entry.second.client != client) return false;
    entry.second.peer->asked = false;
    tasks_.room().release(entry.second.place);
    return true;
  });
  std::erase_if(away_, [&](const auto& entry) {
    if (entry.second.route.client != client) return false;
    if (entry.second.requests == 0) release(entry.second);
    return true;
  });
  std::vector<uint64_t> lost;
  for (const auto& [id, guest] : guests_) {
    if (guest.client == client) lost.push_back(id);
  }
  for (const uint64_t id : lost) {
    Guest& guest = guests_.at(id);
    if (guest.stage == Guest::Stage::comes) guest.places.clear();
    guest.request = guest.collector = 0;
    drop(id);
  }
  std::erase_if(answering_, [&](const auto& entry) { return !guests_.contains(entry.second); });
}

bool Balancer::progress() {
  if (mode_ == Mode::off || (askers_.empty() && granted_.empty() && drops_.empty() && away_.empty() && !tasks_.any()))
    return false;
  const uint64_t now_ns = base::clock_ns();
  bool any = !granted_.empty() || !drops_.empty();
  send_drops();
  send_granted();
  any |= grant(now_ns);
  any |= look_at_home(now_ns);
  return any;
}

int Balancer::timeout_ms() const {
  if (!askers_.empty() || (!routes_.empty() && tasks_.any_waits())) return 1;
  uint64_t next_ns = UINT64_MAX;
  for (const auto& [number, away] : away_) {
    if (!away.begun_here && !away.over) next_ns = std::min(next_ns, tasks::next_look_ns(away.times));
  }
  if (next_ns == UINT64_MAX) return -1;
  const uint64_t now_ns = base::clock_ns();
  return next_ns <= now_ns ? 1 : static_cast<int>(std::min<uint64_t>((next_ns - now_ns) / 1000000 + 1, 1000));
}

Answer Balancer::on_request(ClientId client, uint64_t team, uint32_t from, graph::RequestId request,
                            const std::shared_ptr<memory::Port>& memory, std::span<const uint8_t> body) {
  if (!tasks::is_about_tasks(body)) return others_.on_request(client, team, from, request, memory, body);
  if (mode_ == Mode::off)
    return Answer::reply(Status::error(OFFPATH_ERR_RANGE, "no tasks are taken here (OFFPATH_TASK_BALANCE=off)"));
  auto said = tasks::decode_said(body);
  if (!said.ok()) return Answer::reply(said.status());
  if (said->saying == tasks::Saying::ask) {
    askers_.push_back({request, client, said->load, base::clock_ns()});
    return Answer::later();
  }
  const auto found = guest_of_.find({client, team, from, said->number});
  if (said->saying == tasks::Saying::task) {
    if (found == guest_of_.end())
      return take_guest({client, team, from, said->number}, request, std::move(said->moved));
    return Answer::reply(Status::error(OFFPATH_ERR_ARGUMENT, "a task comes twice"));
  }
  if (said->saying == tasks::Saying::collect) {
    if (found == guest_of_.end()) return Answer::reply(Status::error(OFFPATH_ERR_STATE, "there is no such task"));
    return collect(guests_.at(found->second), found->second, request);
  }
  if (found != guest_of_.end()) drop(found->second);
  return Answer::reply({});
}

}  // namespace offpath::service
