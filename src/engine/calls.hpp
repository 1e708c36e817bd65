// SPDX-License-Identifier: BSD-3-Clause
// Calls: requests between two members. requests.cpp: at the member that asks; answers.cpp: at the one that is asked. Owned by
// the engine; on the worker's thread; blocks nobody. Errors are a request's status. Internal to engine/.
#pragma once

#include "engine/state.hpp"

namespace offpath::engine {

class Calls final : public Room {
 public:
  explicit Calls(State& state) : s_(state) {}

  void on_message(const wire::Message& message, fabric::Bytes payload) override;
  void on_absent(Team& team, const wire::Message& message) override;
  void on_lost(Team& team, uint32_t rank) override;
  void leave(Team& team) override;
  // Whoever asked once may still hold what it was granted, or we what it granted us.
  bool is_awaited(const Team& team) const override { return !team.requests.empty(); }
  void forget(Operation& operation) override;

  // Null: nobody answers. It outlives this.
  void set_responder(Responder* responder) { responder_ = responder; }
  void post(const std::shared_ptr<Team>& team, Request&& request, uint64_t context);
  // An answer to what was put off.
  void answer(RequestId id, Answer answer);
  // The graph that answers a request has ended.
  void end_answer(const Operation& operation);
  bool open() const;

 private:
  size_t request_limit() const { return std::min(graph::kMaxRequestBytes, s_.config.chunk_bytes); }
  RequestPeer& requests_with(Team& team, uint32_t rank);
  void send_requests(Team& team, uint32_t target);
  void handle_request(const wire::Message& message, fabric::Bytes body);
  void handle_reply(const wire::Message& message, fabric::Bytes payload);
  void read_data(const std::shared_ptr<Team>& team, Request&& request, uint64_t context);
  // Those whose data is there and that come first.
  void post_ready(const std::shared_ptr<Team>& team, uint32_t target);
  void number_request(const std::shared_ptr<Team>& team, Request&& request, uint64_t context);
  void place_reply(const std::shared_ptr<Team>& team, const PostedRequest& request, fabric::Bytes payload);
  void end_request(Team& team, const PostedRequest& request, const base::Status& status);
  void finish_request(Team& team, uint64_t context, const base::Status& status);

  void hand_over(const std::shared_ptr<Team>& team, uint32_t from, uint64_t number, fabric::Bytes body);
  void answer_now(RequestId id, const DeferredRequest& request, Answer answer);
  void begin_update(const DeferredRequest& request, const std::shared_ptr<graph::Update>& update);
  void apply_update(const DeferredRequest& request, const std::shared_ptr<graph::Update>& update);
  void end_update(const DeferredRequest& request, graph::Update& update, const base::Status& status);
  void reply(Team& team, uint32_t to, uint64_t number, const base::Status& status, fabric::Bytes payload);

  State& s_;
  Responder* responder_ = nullptr;
  std::unordered_map<RequestId, DeferredRequest> deferred_;
};

}  // namespace offpath::engine
