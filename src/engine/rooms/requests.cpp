// SPDX-License-Identifier: BSD-3-Clause
// Requests at the member that asks. It has at most kMaxUnansweredRequests of them at one target, more wait here: so the target
// need not hold back more than that while one that was overtaken is on its way.
#include "engine/rooms/calls.hpp"
#include "engine/rooms/exports.hpp"
#include "engine/rooms/peers.hpp"

namespace offpath::engine {

using base::Status;
using wire::Channel;
using wire::Kind;
using wire::Message;

void Calls::on_message(const Message& message, fabric::Bytes payload) {
  message.kind == Kind::request ? handle_request(message, payload) : handle_reply(message, payload);
}

RequestPeer* Calls::find(const Team& team, uint32_t rank) {
  const bool is_known = team.requests != nullptr && rank < team.requests->with.size();
  return is_known ? team.requests->with[rank].get() : nullptr;
}

// The first one also makes sure that both notice each other's death.
RequestPeer& Calls::requests_with(Team& team, uint32_t rank) {
  if (!team.said_hello) peers_.say_hello(team);
  if (team.requests == nullptr) {
    team.requests = std::make_shared<Requests>();
    team.requests->with.resize(team.spec.members.size());
  }
  if (team.requests->with[rank] == nullptr) team.requests->with[rank] = std::make_unique<RequestPeer>();
  return *team.requests->with[rank];
}

void Calls::forget(Operation& operation) {
  const OperationKey& key = operation.key;
  if (operation.part == Part::requester) operation.team->requests->with[key.peer]->posted.erase(key.number);
}

// ---- requester ------------------------------------------------------------------------------------------------

void Calls::post(const std::shared_ptr<Team>& team, Request&& request, uint64_t context) {
  const uint32_t target = request.target;
  Status status;
  if (target >= team->spec.members.size()) {
    status = Status::error(OFFPATH_ERR_ARGUMENT, "a request to member %u of %zu", target, team->spec.members.size());
  } else if (std::max<uint64_t>(request.body.size() + request.data_bytes, request.reply_bytes) > request_limit()) {
    status = Status::error(OFFPATH_ERR_ARGUMENT, "a request of %llu bytes with an answer of %llu, %zu are possible",
                           static_cast<unsigned long long>(request.body.size() + request.data_bytes),
                           static_cast<unsigned long long>(request.reply_bytes), request_limit());
  } else if (request.data_bytes > 0 && request.data.layout != kClient &&
             request.data.layout >= request.graph.layouts.size()) {
    status = Status::error(OFFPATH_ERR_ARGUMENT, "a block names layout %u of %zu", request.data.layout,
                           request.graph.layouts.size());
  } else if (team->lost[target] != 0) {
    status = Status::error(OFFPATH_ERR_PEER_LOST, "member %u was lost before the request", target);
  }
  if (!status.ok()) return core_.observer.on_finished(team->spec.client, context, status);
  read_data(team, std::move(request), context);
}

// What a request sends of the member's memory is read first; others to that target wait for it, as they keep their order.
void Calls::read_data(const std::shared_ptr<Team>& team, Request&& request, uint64_t context) {
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
  const memory::Ticket ticket = runner_.next_ticket();
  runner_.when_done(bytes == 0 ? memory::Outcome() : source.memory->read(&body[head], source.address, bytes, ticket),
                    ticket, [this, team, target, next](const Status& status) {
                      next->ready = true;
                      next->status = status;
                      if (!team->abandoned && team->lost[target] == 0) post_ready(team, target);
                    });
}

void Calls::post_ready(const std::shared_ptr<Team>& team, uint32_t target) {
  auto& outgoing = team->requests->with[target]->outgoing;
  while (!outgoing.empty() && outgoing.front()->ready) {
    const std::shared_ptr<Outgoing> next = std::move(outgoing.front());
    outgoing.pop_front();
    --team->open_requests;
    if (next->status.ok()) {
      number_request(team, std::move(next->request), next->context);
    } else {
      core_.observer.on_finished(team->spec.client, next->context, next->status);
    }
  }
  peers_.forget_if_unused(*team);
}

void Calls::number_request(const std::shared_ptr<Team>& team, Request&& request, uint64_t context) {
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
  posted.operation = &core_.add_operation(team, key, Part::requester, std::move(request.graph), context);
  runner_.start(*posted.operation);
}

void Calls::send_requests(Team& team, uint32_t target) {
  RequestPeer& peer = *team.requests->with[target];
  for (; !peer.unsent.empty() && peer.posted.size() - peer.unsent.size() < kMaxUnansweredRequests;
       peer.unsent.pop_front()) {
    const auto& [number, body] = peer.unsent.front();
    peers_.send(team, target, about(Kind::request, team, Channel::calls, number, team.spec.rank, target), body);
  }
}

void Calls::handle_reply(const Message& message, fabric::Bytes payload) {
  const auto team = core_.find_team(message.team, message.from);
  RequestPeer* const found_peer = team == nullptr ? nullptr : find(*team, message.to);
  if (found_peer == nullptr) return;
  RequestPeer& peer = *found_peer;
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

void Calls::place_reply(const std::shared_ptr<Team>& team, const PostedRequest& request, fabric::Bytes payload) {
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
  const memory::Ticket ticket = runner_.next_ticket();
  const memory::Outcome outcome = target.memory->write(target.address, payload.data(), payload.size(), ticket);
  if (request.operation != nullptr) {
    runner_.when_done(*request.operation, outcome, ticket,
                      [this, team, request, kept = std::move(kept)](Operation* operation, const Status& status) {
                        if (operation != nullptr) end_request(*team, request, status);
                      });
  } else {
    runner_.when_done(outcome, ticket, [this, team, request, kept = std::move(kept)](const Status& status) {
      if (!team->abandoned) end_request(*team, request, status);
    });
  }
}

void Calls::end_request(Team& team, const PostedRequest& request, const Status& status) {
  if (request.operation == nullptr) return finish_request(team, request.context, status);
  Operation& operation = *request.operation;
  if (!status.ok()) return runner_.end(operation, status);
  // The target is done: it will not ask for what it has not asked for yet.
  exports_.close(operation);
  operation.awaits_reply = false;
  runner_.end_if_done(operation);
}

void Calls::finish_request(Team& team, uint64_t context, const Status& status) {
  --team.open_requests;
  peers_.forget_if_unused(team);
  core_.observer.on_finished(team.spec.client, context, status);
}

bool Calls::is_to_come(const Team& team, const OperationKey& key) {
  if (key.channel != Channel::answers || team.lost[key.peer] != 0) return false;
  const RequestPeer* peer = find(team, key.peer);
  return peer == nullptr || key.number >= peer->next_asked || peer->deferred.contains(key.number);
}

bool Calls::awaits(const Team& team, uint32_t rank) {
  const RequestPeer* peer = find(team, rank);
  return peer != nullptr && !peer->posted.empty();
}

// ---- loss -----------------------------------------------------------------------------------------------------

// Ends what was asked of that member, and what it has asked; the operations of requests have ended already.
void Calls::on_lost(Team& team, uint32_t rank) {
  if (find(team, rank) == nullptr) return;
  team.exchange.forget_calls_of(rank);
  RequestPeer peer = std::exchange(*team.requests->with[rank], {});
  const Status status = Status::error(OFFPATH_ERR_PEER_LOST, "member %u was lost before the end of a request", rank);
  std::map<RequestId, DeferredRequest> put_off;  // in the order in which they came
  for (auto it = deferred_.begin(); it != deferred_.end();) {
    const bool affected = it->second.team.get() == &team && it->second.from == rank;
    if (affected) put_off.insert(*it);
    it = affected ? deferred_.erase(it) : std::next(it);
  }
  team.open_requests -= put_off.size();
  for (const auto& [id, request] : put_off) responder_->on_answered(team.spec.client, team.spec.context, id, status);
  for (const auto& waiting : peer.outgoing) {
    --team.open_requests;
    core_.observer.on_finished(team.spec.client, waiting->context, status);
  }
  const std::map<uint64_t, PostedRequest> posted(peer.posted.begin(), peer.posted.end());
  for (const auto& [number, request] : posted) {
    if (request.operation != nullptr) continue;
    --team.open_requests;
    core_.observer.on_finished(team.spec.client, request.context, status);
  }
  peers_.forget_if_unused(team);
}

bool Calls::open() const {
  return std::any_of(core_.teams.begin(), core_.teams.end(),
                     [](const auto& entry) { return entry.second->open_requests > 0; });
}

}  // namespace offpath::engine
