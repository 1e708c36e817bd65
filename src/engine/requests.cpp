// SPDX-License-Identifier: BSD-3-Clause
// Requests at the member that asks. It has at most kMaxUnansweredRequests of them at one target, more wait here: so the target
// need not hold back more than that while one that was overtaken is on its way.
#include "engine/exports.hpp"

namespace offpath::engine {

using base::Status;
using wire::Channel;
using wire::Kind;
using wire::Message;

// The first one also makes sure that both notice each other's death.
RequestPeer& Engine::State::requests_with(Team& team, uint32_t rank) {
  say_hello(team);
  if (team.requests.empty()) team.requests.resize(team.spec.members.size());
  if (team.requests[rank] == nullptr) team.requests[rank] = std::make_unique<RequestPeer>();
  return *team.requests[rank];
}

// ---- requester ------------------------------------------------------------------------------------------------

void Engine::post_request(TeamHandle handle, Request request, uint64_t context) {
  State& s = *state_;
  const auto found = s.team_by_handle.find(handle);
  if (found == s.team_by_handle.end()) return;
  const std::shared_ptr<Team> team = found->second;
  const uint32_t target = request.target;
  Status status;
  if (target >= team->spec.members.size()) {
    status = Status::error(OFFPATH_ERR_ARGUMENT, "a request to member %u of %zu", target, team->spec.members.size());
  } else if (std::max<uint64_t>(request.body.size() + request.data_bytes, request.reply_bytes) > s.request_limit()) {
    status = Status::error(OFFPATH_ERR_ARGUMENT, "a request of %llu bytes with an answer of %llu, %zu are possible",
                           static_cast<unsigned long long>(request.body.size() + request.data_bytes),
                           static_cast<unsigned long long>(request.reply_bytes), s.request_limit());
  } else if (request.data_bytes > 0 && request.data.layout != kClient &&
             request.data.layout >= request.graph.layouts.size()) {
    status = Status::error(OFFPATH_ERR_ARGUMENT, "a block names layout %u of %zu", request.data.layout,
                           request.graph.layouts.size());
  } else if (team->lost[target] != 0) {
    status = Status::error(OFFPATH_ERR_PEER_LOST, "member %u was lost before the request", target);
  }
  if (!status.ok()) return s.observer.on_finished(team->spec.client, context, status);

  s.read_data(team, std::move(request), context);
  s.settle();
}

// What a request sends of the member's memory is read first; others to that target wait for it, as they keep their order.
void Engine::State::read_data(const std::shared_ptr<Team>& team, Request&& request, uint64_t context) {
  const uint32_t target = request.target;
  std::deque<std::shared_ptr<Outgoing>>& outgoing = requests_with(*team, target).outgoing;
  if (request.data_bytes == 0 && outgoing.empty()) return number_request(team, std::move(request), context);
  const auto next = std::make_shared<Outgoing>(Outgoing{std::move(request), context, false});
  outgoing.push_back(next);
  ++team->open_requests;
  std::vector<uint8_t>& body = next->request.body;
  const size_t head = body.size();
  const uint64_t bytes = next->request.data_bytes;
  body.resize(head + bytes);
  const Place& place = next->request.data;
  Location source{team->memory, place.base + place.offset};
  if (place.layout != kClient) {
    const Layout& layout = next->request.graph.layouts[place.layout];
    source = {memory::make_strided(team->memory, place.base, memory::index_layout(layout)), place.offset};
  }
  const memory::Ticket ticket = next_ticket();
  when_done(bytes == 0 ? memory::Outcome() : source.memory->read(&body[head], source.address, bytes, ticket), ticket,
            [this, team, target, next](const Status& status) {
              next->ready = true;
              next->status = status;
              if (!team->abandoned && team->lost[target] == 0) post_ready(team, target);
            });
}

void Engine::State::post_ready(const std::shared_ptr<Team>& team, uint32_t target) {
  auto& outgoing = team->requests[target]->outgoing;
  while (!outgoing.empty() && outgoing.front()->ready) {
    const std::shared_ptr<Outgoing> next = std::move(outgoing.front());
    outgoing.pop_front();
    --team->open_requests;
    if (next->status.ok()) {
      number_request(team, std::move(next->request), next->context);
    } else {
      observer.on_finished(team->spec.client, next->context, next->status);
    }
  }
  forget_if_unused(*team);
}

void Engine::State::number_request(const std::shared_ptr<Team>& team, Request&& request, uint64_t context) {
  const uint32_t target = request.target;
  RequestPeer& peer = requests_with(*team, target);
  const uint64_t number = peer.next_posted++;
  PostedRequest& posted = peer.posted[number];
  posted = {context, request.reply, request.reply_bytes, nullptr};
  peer.unsent.emplace_back(number, std::move(request.body));
  send_requests(*team, target);
  const Graph& graph = request.graph;
  if (graph.steps.empty() && graph.exports.empty() && request.reply.layout == kClient) {
    ++team->open_requests;
    return;
  }
  const OperationKey key{Channel::calls, number, target};
  posted.operation = &add_operation(team, key, Part::requester, std::move(request.graph), context);
  start(*posted.operation);
}

void Engine::State::send_requests(Team& team, uint32_t target) {
  RequestPeer& peer = *team.requests[target];
  for (; !peer.unsent.empty() && peer.posted.size() - peer.unsent.size() < kMaxUnansweredRequests;
       peer.unsent.pop_front()) {
    const auto& [number, body] = peer.unsent.front();
    send(team, target, about(Kind::request, team, Channel::calls, number, team.spec.rank, target), body);
  }
}

void Engine::State::handle_reply(const Message& message, fabric::Bytes payload) {
  const auto team = find_team(message.team, message.from);
  if (team == nullptr || message.to >= team->requests.size() || team->requests[message.to] == nullptr) return;
  RequestPeer& peer = *team->requests[message.to];
  const uint64_t number = message.number;
  const auto found = peer.posted.find(number);
  const bool asked = found != peer.posted.end() && (peer.unsent.empty() || number < peer.unsent.front().first);
  if (!asked) return;
  const PostedRequest request = found->second;
  peer.posted.erase(found);
  send_requests(*team, message.to);
  const auto code = static_cast<offpath_status_t>(message.status);
  if (code == OFFPATH_OK) return place_reply(team, request, payload);
  end_request(*team, request,
              Status::error(code, "member %u has refused a request: %s", message.to, offpath_status_string(code)));
}

void Engine::State::place_reply(const std::shared_ptr<Team>& team, const PostedRequest& request,
                                fabric::Bytes payload) {
  if (payload.size() != request.reply_bytes) {
    return end_request(*team, request,
                       Status::error(OFFPATH_ERR_TRUNCATED, "an answer of %zu bytes where %llu were expected",
                                     payload.size(), static_cast<unsigned long long>(request.reply_bytes)));
  }
  if (payload.empty()) return end_request(*team, request, {});
  Location target{team->memory, request.reply.base + request.reply.offset};
  if (request.operation != nullptr) {
    if (const Status status = request.operation->resolve(request.reply, target); !status.ok()) {
      return end_request(*team, request, status);
    }
  }
  std::vector<uint8_t> kept;
  if (!target.memory->prompt()) {
    kept.assign(payload.begin(), payload.end());
    payload = kept;
  }
  const memory::Ticket ticket = next_ticket();
  const memory::Outcome outcome = target.memory->write(target.address, payload.data(), payload.size(), ticket);
  if (request.operation != nullptr) {
    when_done(*request.operation, outcome, ticket,
              [this, team, request, kept = std::move(kept)](Operation* operation, const Status& status) {
                if (operation != nullptr) end_request(*team, request, status);
              });
  } else {
    when_done(outcome, ticket, [this, team, request, kept = std::move(kept)](const Status& status) {
      if (!team->abandoned) end_request(*team, request, status);
    });
  }
}

void Engine::State::end_request(Team& team, const PostedRequest& request, const Status& status) {
  if (request.operation == nullptr) return finish_request(team, request.context, status);
  Operation& operation = *request.operation;
  if (!status.ok()) return end(operation, status);
  // The target is done: it will not ask for what it has not asked for yet.
  exports->close(operation);
  operation.awaits_reply = false;
  end_if_done(operation);
}

void Engine::State::finish_request(Team& team, uint64_t context, const Status& status) {
  --team.open_requests;
  forget_if_unused(team);
  observer.on_finished(team.spec.client, context, status);
}

// ---- loss -----------------------------------------------------------------------------------------------------

// Ends what was asked of that member, and what it has asked; the operations of requests have ended already.
void Engine::State::lose_requests(Team& team, uint32_t rank) {
  if (team.requests.empty() || team.requests[rank] == nullptr) return;
  team.exchange.forget_calls_of(rank);
  RequestPeer peer = std::exchange(*team.requests[rank], {});
  const Status status = Status::error(OFFPATH_ERR_PEER_LOST, "member %u was lost before the end of a request", rank);
  std::map<RequestId, DeferredRequest> put_off;  // in the order in which they came
  for (auto it = deferred.begin(); it != deferred.end();) {
    const bool affected = it->second.team.get() == &team && it->second.from == rank;
    if (affected) put_off.insert(*it);
    it = affected ? deferred.erase(it) : std::next(it);
  }
  team.open_requests -= put_off.size();
  for (const auto& [id, request] : put_off) responder->on_answered(team.spec.client, team.spec.context, id, status);
  for (const auto& waiting : peer.outgoing) {
    --team.open_requests;
    observer.on_finished(team.spec.client, waiting->context, status);
  }
  const std::map<uint64_t, PostedRequest> posted(peer.posted.begin(), peer.posted.end());
  for (const auto& [number, request] : posted) {
    if (request.operation != nullptr) continue;
    --team.open_requests;
    observer.on_finished(team.spec.client, request.context, status);
  }
  forget_if_unused(team);
}

}  // namespace offpath::engine
