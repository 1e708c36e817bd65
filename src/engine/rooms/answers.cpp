// SPDX-License-Identifier: BSD-3-Clause
// Requests at the member that is asked: handed to the responder in order, and what becomes of its answers.
#include "engine/rooms/calls.hpp"
#include "engine/rooms/exports.hpp"
#include "engine/rooms/peers.hpp"

namespace offpath::engine {

using base::Status;
using wire::Channel;
using wire::Kind;
using wire::Message;

void Calls::handle_request(const Message& message, fabric::Bytes body) {
  const auto team = core_.find_team(message.team, message.to);
  if (team == nullptr) return peers_.handle_absent({message.team, message.to}, message, body);
  const uint64_t number = message.number;
  const bool sound = message.from < team->spec.members.size() && message.channel == Channel::calls;
  if (!sound || body.size() > graph::kMaxRequestBytes)
    return core_.refuse_message("a request that nobody can have posted");
  if (team->lost[message.from] != 0) return;
  RequestPeer& peer = requests_with(*team, message.from);
  if (number < peer.next_asked || peer.held.contains(number))
    return core_.refuse_message("a request for the second time");
  if (number > peer.next_asked) {
    if (number - peer.next_asked >= kMaxUnansweredRequests)
      return core_.refuse_message("a request too far ahead of others");
    peer.held.emplace(number, std::vector<uint8_t>(body.begin(), body.end()));
    return;
  }
  hand_over(team, message.from, peer.next_asked++, body);
  while (!peer.held.empty() && peer.held.begin()->first == peer.next_asked) {
    const auto next = peer.held.extract(peer.held.begin());
    hand_over(team, message.from, peer.next_asked++, next.mapped());
  }
}

void Calls::hand_over(const std::shared_ptr<Team>& team, uint32_t from, uint64_t number, fabric::Bytes body) {
  const RequestId id = core_.next_id++;
  Answer answer;
  if (responder_ == nullptr || team->removed) {
    answer.status = Status::error(OFFPATH_ERR_RANGE, "nobody answers requests to member %u", team->spec.rank);
  } else {
    answer = responder_->on_request(team->spec.client, team->spec.context, from, id, team->memory, body);
  }
  answer_now(id, {team, from, number}, std::move(answer));
}

void Calls::answer_now(RequestId id, const DeferredRequest& request, Answer answer) {
  const auto& [team, from, number] = request;
  if (answer.kind == Answer::Kind::reply) return reply(*team, from, number, answer.status, answer.payload);
  if (answer.kind == Answer::Kind::graph) {
    const OperationKey key{Channel::answers, number, from};
    return runner_.start(core_.add_operation(team, key, Part::responder, std::move(answer.graph), id));
  }
  if (answer.kind == Answer::Kind::update) {
    if (answer.update->bytes <= request_limit()) return begin_update(request, answer.update);
    return reply(*team, from, number, Status::error(OFFPATH_ERR_INTERNAL, "an update of too much"), {});
  }
  deferred_.emplace(id, request);
  requests_with(*team, from).deferred.insert(number);
  ++team->open_requests;
}

void Calls::begin_update(const DeferredRequest& request, const std::shared_ptr<graph::Update>& update) {
  ++request.team->open_requests;
  if (!update->reads) return apply_update(request, update);
  update->before.resize(update->bytes);
  const memory::Ticket ticket = runner_.next_ticket();
  runner_.when_done(update->memory->read(update->before.data(), update->address, update->bytes, ticket), ticket,
                    [this, request, update](const Status& status) {
                      if (status.ok()) return apply_update(request, update);
                      end_update(request, *update, status);
                    });
}

void Calls::apply_update(const DeferredRequest& request, const std::shared_ptr<graph::Update>& update) {
  const uint8_t* after = update->apply(update->reads ? update->before.data() : nullptr);
  if (after == nullptr) return end_update(request, *update, {});
  const memory::Ticket ticket = runner_.next_ticket();
  runner_.when_done(update->memory->write(update->address, after, update->bytes, ticket), ticket,
                    [this, request, update](const Status& status) { end_update(request, *update, status); });
}

void Calls::end_update(const DeferredRequest& request, graph::Update& update, const Status& status) {
  Team& team = *request.team;
  --team.open_requests;
  update.on_ended();
  if (team.abandoned) return;
  const bool with_data = status.ok() && update.replies;
  reply(team, request.from, request.number, status, with_data ? fabric::Bytes(update.before) : fabric::Bytes());
  peers_.forget_if_unused(team);
}

void Calls::answer_next() {
  auto [id, answer] = std::move(answers_.front());
  answers_.pop_front();
  const auto found = deferred_.find(id);
  if (found == deferred_.end()) return;
  const DeferredRequest request = std::move(found->second);
  deferred_.erase(found);
  request.team->requests->with[request.from]->deferred.erase(request.number);
  --request.team->open_requests;
  answer_now(id, request, std::move(answer));
  peers_.forget_if_unused(*request.team);
}

// Pulls of the request that came before its answer, and find nothing now, are refused.
void Calls::reply(Team& team, uint32_t to, uint64_t number, const Status& status, fabric::Bytes payload) {
  const OperationKey key{Channel::answers, number, to};
  for (const Message& pull : team.exchange.take_pulls(key))
    exports_.refuse_pull(team, to, pull.pull_id, OFFPATH_ERR_STATE);
  Message message = about(Kind::reply, team, Channel::calls, number, to, team.spec.rank);
  message.status = payload.size() <= request_limit() ? status.code() : OFFPATH_ERR_INTERNAL;
  if (message.status != OFFPATH_OK) payload = {};
  if (team.lost[to] == 0) peers_.send(team, to, message, payload);
}

void Calls::end_answer(const Operation& operation) {
  Team& team = *operation.team;
  responder_->on_answered(team.spec.client, team.spec.context, operation.context, operation.status);
  reply(team, operation.key.peer, operation.key.number, operation.status, {});
}

void Calls::on_absent(Team& team, const Message& message) {
  if (message.from >= team.spec.members.size()) return core_.refuse_message("a member that the team does not have");
  if (peers_.say_abandoned(team, message.from)) return;
  reply(team, message.from, message.number,
        Status::error(OFFPATH_ERR_RANGE, "member %u has left the team", team.spec.rank), {});
}

// A member that leaves in peace has put nothing off.
void Calls::leave(Team& team) {
  team.requests.reset();
  if (team.abandoned) std::erase_if(deferred_, [&](const auto& entry) { return entry.second.team.get() == &team; });
}

}  // namespace offpath::engine
