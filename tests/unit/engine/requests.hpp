// SPDX-License-Identifier: BSD-3-Clause
// A responder that does what the body of a request says, and a cluster with one on every node.
#pragma once

#include "cluster.hpp"

#include <algorithm>
#include <cstring>

namespace offpath::testing {

using Bytes = std::vector<uint8_t>;

struct Ask {
  enum Kind : uint32_t { echo, refuse, put, get, swap, later } kind = echo;
  uint32_t then = echo;  // later: what it is answered with
  uint64_t address = 0;  // at the target
  uint64_t bytes = 0;    // there; echo: of the answer, which repeats the serial's lowest byte
  uint64_t serial = 0;
};

inline Bytes body_of(const Ask& ask) {
  Bytes body(sizeof(ask));
  memcpy(body.data(), &ask, sizeof(ask));
  return body;
}

inline uint8_t echo_byte(uint64_t serial) { return static_cast<uint8_t>(serial * 7 + 1); }

class Obedient : public graph::Responder {
 public:
  struct Seen {
    engine::ClientId client;
    uint32_t from;
    graph::RequestId id;
    Ask ask;
  };
  graph::Answer on_request(engine::ClientId client, uint64_t, uint32_t from, graph::RequestId id,
                           const std::shared_ptr<memory::Port>& memory, fabric::Bytes body) override {
    EXPECT_NE(memory, nullptr);
    Ask ask{.kind = Ask::refuse};
    if (body.size() == sizeof(ask)) memcpy(&ask, body.data(), sizeof(ask));
    seen.push_back({client, from, id, ask});
    if (ask.kind == Ask::later) put_off.push_back(seen.back());
    return answer(seen.back(), ask.kind);
  }
  void on_answered(engine::ClientId client, uint64_t, graph::RequestId id, const base::Status& status) override {
    EXPECT_TRUE(open.erase(id) == 1 || is_put_off(id)) << "answered twice";
    std::erase_if(put_off, [&](const Seen& s) { return s.id == id; });
    answered.emplace_back(client, status.code());
  }
  // Answers what was put off longest.
  void answer_one(engine::Engine& engine, size_t index = 0) {
    const Seen next = put_off[index];
    put_off.erase(put_off.begin() + static_cast<std::ptrdiff_t>(index));
    engine.answer(next.id, answer(next, next.ask.then));
  }

  std::vector<Seen> seen;
  std::deque<Seen> put_off;
  std::set<graph::RequestId> open;  // graphs
  std::vector<std::pair<engine::ClientId, offpath_status_t>> answered;

 private:
  bool is_put_off(graph::RequestId id) const {
    return std::any_of(put_off.begin(), put_off.end(), [&](const Seen& s) { return s.id == id; });
  }
  // put: the target pulls; get: it exports; swap: it exports a copy, then pulls over what was there.
  graph::Answer answer(const Seen& request, uint32_t kind) {
    const Ask& ask = request.ask;
    graph::Answer answer;
    const graph::Place place = graph::client_place(ask.address);
    graph::Graph& graph = answer.graph;
    if (kind == Ask::put || kind == Ask::get || kind == Ask::swap) {
      answer.kind = graph::Answer::Kind::graph;
      open.insert(request.id);
    }
    if (kind == Ask::put) graph.pull(request.from, 0, place, ask.bytes);
    if (kind == Ask::get) graph.offer(request.from, 1, place, ask.bytes);
    if (kind == Ask::swap) {
      const graph::Place old = graph::scratch_place(graph.reserve_scratch(ask.bytes));
      const uint32_t copy = graph.copy(place, old, ask.bytes);
      graph.offer(request.from, 1, old, ask.bytes, copy);
      graph.order(copy, graph.pull(request.from, 0, place, ask.bytes));
    }
    if (kind == Ask::later) answer.kind = graph::Answer::Kind::later;
    if (kind == Ask::refuse) answer.status = base::Status::error(OFFPATH_ERR_RANGE, "outside");
    if (kind == Ask::echo) answer.payload.assign(ask.bytes, echo_byte(ask.serial));
    return answer;
  }
};

class Requests : public ::testing::Test {
 protected:
  static constexpr uint32_t kRanks = 4;
  explicit Requests(uint32_t nodes = 2, uint64_t seed = 77, engine::Config config = Cluster::small_chunks())
      : cluster(nodes, kRanks, seed, config, memory) {
    for (uint32_t i = 0; i < cluster.engines(); ++i) cluster.engine_at(i).set_responder(&responders[i]);
  }
  Obedient& at(uint32_t rank) { return responders[cluster.engine_index(rank)]; }
  // Posts from `rank`; returns the context. `local`: the requester's own memory of the blocks or of the answer.
  uint64_t ask(uint32_t rank, uint32_t target, Ask what, uint64_t local = 0, uint64_t reply_bytes = 0) {
    graph::Request request;
    request.target = target;
    request.body = body_of(what);
    const uint32_t kind = what.kind == Ask::later ? what.then : what.kind;
    if (kind == Ask::put || kind == Ask::swap) {
      request.graph.offer(target, 0, graph::client_place(local), what.bytes);
    }
    if (kind == Ask::get || kind == Ask::swap) {
      // What is exchanged arrives behind what is sent.
      const uint64_t to = kind == Ask::swap ? local + what.bytes : local;
      request.graph.pull(target, 1, graph::client_place(to), what.bytes);
    }
    if (kind == Ask::echo) request.reply_bytes = reply_bytes == 0 ? what.bytes : reply_bytes;
    request.reply = graph::client_place(local);
    return post(rank, std::move(request));
  }
  uint64_t post(uint32_t rank, graph::Request request) {
    const uint64_t context = next_context++;
    cluster.engine_of(rank).post_request(team[rank], std::move(request), context);
    return context;
  }
  // Runs, and answers what was put off, in any order, until nothing is left of either.
  void finish() {
    for (bool any = true; any;) {
      cluster.settle();
      any = false;
      for (uint32_t i = 0; i < cluster.engines(); ++i) {
        Obedient& responder = responders[i];
        if (responder.put_off.empty()) continue;
        responder.answer_one(cluster.engine_at(i), cluster.random()() % responder.put_off.size());
        any = true;
      }
    }
  }
  std::map<uint32_t, Obedient> responders;
  std::shared_ptr<FarMemory> memory = std::make_shared<FarMemory>();
  Cluster cluster;
  std::vector<engine::TeamHandle> team = cluster.make_team({0, 1, 2, 3}, 1);
  uint64_t next_context = 1u << 20;
};

}  // namespace offpath::testing
