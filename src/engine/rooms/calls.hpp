// SPDX-License-Identifier: BSD-3-Clause
// Calls: requests between two members. requests.cpp: at the member that asks; answers.cpp: at the one that is asked. Owned by
// the engine; on the worker's thread; blocks nobody. Errors are a request's status. Internal to engine/.
#pragma once

#include "engine/rooms/room.hpp"

#include <unordered_map>
#include <unordered_set>

namespace offpath::engine {

inline constexpr size_t kMaxUnansweredRequests = 4096;  // of one member at another

// A request of this member that was not answered yet.
struct PostedRequest {
  uint64_t context = 0;
  Place reply;
  uint64_t reply_bytes = 0;
  Operation* operation = nullptr;  // null: the answer is all there is to it
};

// A request whose data is being read, or that waits for one before it.
struct Outgoing {
  Request request;
  uint64_t context = 0;
  bool ready = false;
  base::Status status = {};
};

// Requests between this member and another one, both ways.
struct RequestPeer {
  std::deque<std::shared_ptr<Outgoing>> outgoing;
  uint64_t next_posted = 0;
  std::unordered_map<uint64_t, PostedRequest> posted;            // by number
  std::deque<std::pair<uint64_t, std::vector<uint8_t>>> unsent;  // of these: number and body
  uint64_t next_asked = 0;
  std::map<uint64_t, std::vector<uint8_t>> held;  // bodies by number: came before an earlier one
  std::unordered_set<uint64_t> deferred;          // numbers of those put off
};

struct Requests {
  std::vector<std::unique_ptr<RequestPeer>> with;  // by rank, null: none yet
};

// A request of another member that the responder has put off.
struct DeferredRequest {
  std::shared_ptr<Team> team;
  uint32_t from = 0;
  uint64_t number = 0;
};

class Exports;
class Peers;

class Calls final : public Room {
 public:
  Calls(Core& core, Runner& runner, const Config& config, Peers& peers, Exports& exports)
      : Room(core, runner, config), peers_(peers), exports_(exports) {}

  void on_message(const wire::Message& message, fabric::Bytes payload) override;
  void on_absent(Team& team, const wire::Message& message) override;
  void on_lost(Team& team, uint32_t rank) override;
  void leave(Team& team) override;
  // Whoever asked once may still hold what it was granted, or we what it granted us.
  bool is_awaited(const Team& team) const override { return team.requests != nullptr; }
  void forget(Operation& operation) override;

  // Null: nobody answers. It outlives this.
  void set_responder(Responder* responder) { responder_ = responder; }
  void post(const std::shared_ptr<Team>& team, Request&& request, uint64_t context);
  // An answer to what was put off; given by answer_next().
  void answer(RequestId id, Answer answer) {
    answers_.emplace_back(id, std::move(answer));
    runner_.put_off();
  }
  bool has_answers() const { return !answers_.empty(); }
  void answer_next();
  // The graph that answers a request has ended.
  void end_answer(const Operation& operation);
  bool open() const;
  // Whether the operation of a request, which is not here, may still come. A member knows of its own requests before anybody can
  // pull their blocks.
  static bool is_to_come(const Team& team, const OperationKey& key);
  // Whether that member has to answer.
  static bool awaits(const Team& team, uint32_t rank);

 private:
  size_t request_limit() const { return std::min(graph::kMaxRequestBytes, config_.chunk_bytes); }
  // Null: there were none yet.
  static RequestPeer* find(const Team& team, uint32_t rank);
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

  Peers& peers_;
  Exports& exports_;
  Responder* responder_ = nullptr;
  std::unordered_map<RequestId, DeferredRequest> deferred_;
  std::deque<std::pair<RequestId, Answer>> answers_;
};

}  // namespace offpath::engine
