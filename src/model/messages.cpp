// SPDX-License-Identifier: BSD-3-Clause
#include "model/messages.hpp"

#include <algorithm>

namespace offpath::model {
namespace {

constexpr double kQueuedPieces = 3;  // of one long message at a time: Open MPI's send pipeline
constexpr double kNothingBytes = 0.5;

}  // namespace

void Messages::add(uint32_t operation, std::vector<Part> parts) {
  for (Part& part : parts) {
    graph::Graph& graph = part.graph;
    graph.seal();
    part.exports_after.resize(graph.steps.size());
    for (uint32_t i = 0; i < graph.exports.size(); ++i) {
      if (graph.exports[i].after != graph::kNoStep) part.exports_after[graph.exports[i].after].push_back(i);
    }
    for (uint32_t i = 0; i < graph.steps.size(); ++i) {
      const graph::Step& step = graph.steps[i];
      if (step.kind == graph::StepKind::pull) part.step_of[key(step.peer, step.tag)] = i;
    }
    part.left = static_cast<uint32_t>(graph.steps.size() + graph.exports.size());
    part.operation = operation;
  }
  operations_.emplace(operation, std::move(parts));
}

// ---- messages -------------------------------------------------------------------------------------------------

// Without data. In turn: behind data that the library has queued.
void Messages::say(Part& from, Part& to, Action action, bool in_turn) {
  const double cost_ns = machine_.native.message_ns;
  from.agent->handle(cost_ns, [this, &from, &to, cost_ns, in_turn, act = std::move(action)] {
    const auto arrived = [&to, cost_ns, act] { to.agent->handle(cost_ns, act); };
    if (from.agent->node() == to.agent->node()) return arrived();
    in_turn ? send_in_turn(from, to, machine_.header_bytes, arrived) : send(from, to, machine_.header_bytes, arrived);
  });
}

void Messages::send(const Part& from, const Part& to, double bytes, Action arrived) {
  const uint64_t connection = connections_.try_emplace({from.agent, to.agent}, connections_.size()).first->second;
  network_.send(connection, from.agent->route_to(*to.agent), bytes, std::move(arrived));
}

// Short messages with data do not overtake pieces of long ones that the library has queued for the same socket.
void Messages::send_in_turn(const Part& from, const Part& to, double bytes, Action arrived) {
  const auto found = sockets_.find({from.agent, to.agent});
  if (found == sockets_.end()) return send(from, to, bytes, std::move(arrived));
  Socket& socket = found->second;
  double queued_bytes = 0;
  for (const auto& stream : socket.queue) {
    queued_bytes += std::min(stream->left_bytes, kQueuedPieces * machine_.native.chunk_bytes);
  }
  if (queued_bytes <= 0) return send(from, to, bytes, std::move(arrived));
  socket.behind.emplace_back(socket.handed_bytes + queued_bytes,
                             [this, &from, &to, bytes, act = std::move(arrived)] { send(from, to, bytes, act); });
}

// ---- steps ----------------------------------------------------------------------------------------------------

void Messages::begin(uint32_t operation, uint32_t member) {
  Part& part = part_of(operation, member);
  part.agent->handle(machine_.native.post_ns, [this, &part] {
    if (part.left == 0) return on_done_(part.operation, part.member);
    std::vector<uint32_t> first;
    for (uint32_t i = 0; i < part.graph.steps.size(); ++i) {
      if (part.graph.steps[i].waits == 0) first.push_back(i);
    }
    for (uint32_t i = 0; i < part.graph.exports.size(); ++i) {
      if (part.graph.exports[i].after == graph::kNoStep) make_ready(part, i);
    }
    for (const uint32_t step : first) start_step(part, step);
  });
}

void Messages::begin_target(uint32_t operation) {
  say(
      part_of(operation, 0), part_of(operation, 1), [this, operation] { begin(operation, 1); }, true);
}

void Messages::start_step(Part& part, uint32_t step) {
  const graph::Step& s = part.graph.steps[step];
  if (s.kind == graph::StepKind::pull) return start_receive(part, step);
  const double speed = s.kind == graph::StepKind::copy ? machine_.copy_bytes_per_ns : machine_.reduce_bytes_per_ns;
  work(part, static_cast<double>(s.bytes), 1 / speed, [this, &part, step] { finish_step(part, step); });
}

// In chunks, so that other work of the agent comes in between.
void Messages::work(Part& part, double bytes, double ns_per_byte, Action done) {
  if (bytes <= 0) return done();
  const double chunk = std::min(bytes, machine_.native.chunk_bytes);
  part.agent->handle(chunk * ns_per_byte, [this, &part, bytes, chunk, ns_per_byte, act = std::move(done)] {
    work(part, bytes - chunk, ns_per_byte, act);
  });
}

void Messages::start_receive(Part& part, uint32_t step) {
  const graph::Step& s = part.graph.steps[step];
  Part::Arrival& arrival = part.arrivals[key(s.peer, s.tag)];
  arrival.wanted = true;
  if (arrival.here) return finish_step(part, step);
  if (!arrival.announced) return;
  Part& peer = peer_of(part, s.peer);
  const uint32_t index = peer.graph.find_export(part.member, s.tag);
  say(part, peer, [this, &peer, index] { stream(peer, index); });
}

void Messages::make_ready(Part& part, uint32_t index) {
  const graph::Export& e = part.graph.exports[index];
  if (is_short(e.bytes)) return send_at_once(part, index);
  Part& peer = peer_of(part, e.peer);
  const uint64_t pull = key(part.member, e.tag);
  say(part, peer, [this, &peer, pull] {
    Part::Arrival& arrival = peer.arrivals[pull];
    arrival.announced = true;
    if (arrival.wanted) start_receive(peer, peer.step_of.at(pull));
  });
}

void Messages::send_at_once(Part& part, uint32_t index) {
  const graph::Export& e = part.graph.exports[index];
  Part& peer = peer_of(part, e.peer);
  const uint64_t pull = key(part.member, e.tag);
  const auto bytes = static_cast<double>(e.bytes);
  const Native& n = machine_.native;
  part.agent->handle(n.message_ns + bytes * n.send_ns_per_byte, [this, &n, &part, &peer, index, pull, bytes] {
    const auto arrived = [this, &n, &peer, pull, bytes] {
      peer.agent->handle(n.message_ns + bytes * n.receive_ns_per_byte, [this, &peer, pull] {
        Part::Arrival& arrival = peer.arrivals[pull];
        arrival.here = true;
        if (arrival.wanted) finish_step(peer, peer.step_of.at(pull));
      });
    };
    take(part, index);
    if (part.agent->node() == peer.agent->node()) return arrived();
    send_in_turn(part, peer, machine_.header_bytes + bytes / machine_.wire_efficiency, arrived);
  });
}

// Announced and asked for: the block goes. Inside the node the receiver copies.
void Messages::stream(Part& part, uint32_t index) {
  const graph::Export& e = part.graph.exports[index];
  Part& peer = peer_of(part, e.peer);
  const auto bytes = static_cast<double>(e.bytes);
  if (part.agent->node() == peer.agent->node()) {
    part.agent->handle(machine_.native.message_ns / 2, [this, &part, &peer, index, bytes] {
      peer.agent->handle(machine_.native.message_ns / 2, [this, &part, &peer, index, bytes] {
        work(peer, bytes, 1 / machine_.copy_bytes_per_ns, [this, &part, &peer, index] {
          finish_step(peer, peer.step_of.at(key(part.member, part.graph.exports[index].tag)));
          peer.agent->handle(0, [this, &part, index] { take(part, index); });
        });
      });
    });
    return;
  }
  Socket& socket = sockets_[{part.agent, peer.agent}];
  const auto state = std::make_shared<Stream>(Stream{bytes});
  std::erase_if(socket.queue, [](const auto& stream) { return stream->left_bytes <= 0; });
  socket.queue.push_back(state);
  hand_over(part, index, state, socket);
}

// The next chunk, if the socket takes it, and then the one after.
void Messages::hand_over(Part& part, uint32_t index, const std::shared_ptr<Stream>& stream, Socket& socket) {
  const Native& n = machine_.native;
  if (stream->sending || stream->left_bytes <= 0) return;
  if (socket.in_flight_bytes > 0 && socket.in_flight_bytes + n.chunk_bytes > std::max(n.window_bytes, n.chunk_bytes)) {
    socket.waiting.push_back([=, this, &part, &socket] { hand_over(part, index, stream, socket); });
    return;
  }
  Part& peer = peer_of(part, part.graph.exports[index].peer);
  const uint64_t pull = key(part.member, part.graph.exports[index].tag);
  const double chunk = std::min(stream->left_bytes, n.chunk_bytes);
  stream->left_bytes -= chunk;
  socket.in_flight_bytes += chunk;
  stream->sending = true;
  const bool last = stream->left_bytes <= 0;
  part.agent->handle(n.message_ns + chunk * n.send_ns_per_byte, [=, this, &n, &part, &peer, &socket] {
    stream->sending = false;
    const auto arrived = [=, this, &n, &peer, &socket] {
      peer.agent->handle(n.message_ns + chunk * n.receive_ns_per_byte, [=, this, &peer, &socket] {
        socket.in_flight_bytes -= chunk;
        for (const Action& next : std::exchange(socket.waiting, {})) next();
        if (last) finish_step(peer, peer.step_of.at(pull));
      });
    };
    send(part, peer, machine_.header_bytes + chunk / machine_.wire_efficiency, arrived);
    socket.handed_bytes += chunk;
    while (!socket.behind.empty() && socket.behind.front().first <= socket.handed_bytes + kNothingBytes) {
      const Action next = std::move(socket.behind.front().second);
      socket.behind.pop_front();
      next();
    }
    if (last) take(part, index);  // its sender knows
    hand_over(part, index, stream, socket);
  });
}

void Messages::finish_step(Part& part, uint32_t step) {
  for (const uint32_t index : part.exports_after[step]) make_ready(part, index);
  release(part, part.graph.steps[step].next);
}

void Messages::take(Part& part, uint32_t index) { release(part, part.graph.exports[index].next); }

// A step or an export is done.
void Messages::release(Part& part, const std::vector<uint32_t>& steps) {
  --part.left;
  for (const uint32_t next : steps) {
    if (--part.graph.steps[next].waits == 0) start_step(part, next);
  }
  if (part.left == 0) on_done_(part.operation, part.member);
}

}  // namespace offpath::model
