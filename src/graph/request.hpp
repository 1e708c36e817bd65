// SPDX-License-Identifier: BSD-3-Clause
// Requests: what one member asks of another's service.
//
// A request carries an opaque body to the service of the target member, which answers it without the target's process.
// An answer may need data in either direction: then both sides have a graph, and the two graphs are an operation of
// two members under the request's own key; they pull from each other like those of a collective. Requests of one
// member to one target reach the responder in the order of posting; answers come in any order.
// A request ends when its graph is done and the answer is there; a failed answer ends it at once, its memory is not
// touched any more then. What the target has not asked for when it says that it is done, it never will.
#pragma once

#include "graph/graph.hpp"

#include <span>

namespace offpath::graph {

using ClientId = uint64_t;   // unique in a service, never used again
using RequestId = uint64_t;  // unique in an engine, never used again

inline constexpr size_t kMaxRequestBytes = 4 << 10;

struct Request {
  uint32_t target = 0;        // member; may be local, may be the own one
  std::vector<uint8_t> body;  // with `data_bytes` at most kMaxRequestBytes, and a chunk of the engine
  Place data;                 // of the member's memory: what is read and sent behind the body
  uint64_t data_bytes = 0;
  Graph graph;               // the member's own part; empty: the answer is all
  Place reply;               // where an answer's payload goes (graph.layouts may describe it)
  uint64_t reply_bytes = 0;  // exactly so many, or the answer is a failure; same limits
};

// Short work on the target's memory: the engine reads, asks what is to lie there, writes that, and replies.
class Update {
 public:
  virtual ~Update() = default;
  // What lies there afterwards; null: what lies there now. `before` is null unless it is read.
  virtual const uint8_t* apply(const uint8_t* before) = 0;
  // Nothing works on the memory any more.
  virtual void on_ended() {}
  // Set by who hands it over:
  std::shared_ptr<memory::Port> memory;
  uint64_t address = 0;
  uint64_t bytes = 0;           // at most a chunk of the engine
  bool reads = false;           // what lies there
  bool replies = false;         // with that
  std::vector<uint8_t> before;  // what was read
};

// An answer to a request. Graph: the engine runs it and then answers with its status. Update: likewise. Later: the engine
// will be told.
struct Answer {
  enum class Kind : uint8_t { reply, graph, update, later };
  static Answer reply(base::Status status, std::vector<uint8_t> payload = {}) {
    Answer answer;
    answer.status = std::move(status);
    answer.payload = std::move(payload);
    return answer;
  }
  static Answer run(Graph graph) {
    Answer answer;
    answer.kind = Kind::graph;
    answer.graph = std::move(graph);
    return answer;
  }
  static Answer apply(std::shared_ptr<Update> update) {
    Answer answer;
    answer.kind = Kind::update;
    answer.update = std::move(update);
    return answer;
  }
  static Answer later() {
    Answer answer;
    answer.kind = Kind::later;
    return answer;
  }

  Kind kind = Kind::reply;
  base::Status status;           // reply
  std::vector<uint8_t> payload;  // reply; same limits
  Graph graph;                   // graph; works on the target's memory
  std::shared_ptr<Update> update;
};

// Does it on memory that is prompt. What the target replies.
inline Answer carry_out(Update& update) {
  Answer answer;
  if (update.reads) {
    update.before.resize(update.bytes);
    answer.status = update.memory->read(update.before.data(), update.address, update.bytes).status();
  }
  const uint8_t* after = answer.status.ok() ? update.apply(update.reads ? update.before.data() : nullptr) : nullptr;
  if (after != nullptr) answer.status = update.memory->write(update.address, after, update.bytes).status();
  if (answer.status.ok() && update.replies) answer.payload = std::move(update.before);
  update.on_ended();
  return answer;
}

// What answers requests for the members served here. Called inside the engine; must not call it back, but for
// Engine::answer().
class Responder {
 public:
  virtual ~Responder() = default;
  // `team`: the context of the target's team. `memory`: the target's. `body` came from another service and may hold
  // anything; it is gone after the call.
  virtual Answer on_request(ClientId client, uint64_t team, uint32_t from, RequestId request,
                            const std::shared_ptr<memory::Port>& memory, std::span<const uint8_t> body) = 0;
  // The graph that on_request or Engine::answer() gave for it has ended, or the requester of one that was put off is
  // lost. May call Engine::answer() for others.
  virtual void on_answered(ClientId client, uint64_t team, RequestId request, const base::Status& status) = 0;
};

}  // namespace offpath::graph
