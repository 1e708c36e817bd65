// SPDX-License-Identifier: BSD-3-Clause
#include "model/transfer.hpp"

#include "wire/message.hpp"

#include <algorithm>

namespace offpath::model {
namespace {

constexpr double kQueuedPieces = 3;  // of one long message at a time: Open MPI's send pipeline
constexpr double kNothingBytes = 0.5;

}  // namespace

Costs Costs::of_service(const Machine& m) {
  return {m.service.message_ns,
          m.service.operation_ns,
          m.service.step_ns,
          m.service.send_ns_per_byte,
          m.service.receive_ns_per_byte,
          1 / m.cma_bytes_per_ns,
          1 / m.reduce_bytes_per_ns,
          m.service.chunk_bytes,
          std::max(m.service.window_bytes, m.service.chunk_bytes),
          static_cast<double>(wire::kPushedBytes),
          false};
}

Costs Costs::of_native(const Machine& m) {
  return {m.native.message_ns,
          m.native.post_ns,
          0,
          m.native.send_ns_per_byte,
          m.native.receive_ns_per_byte,
          1 / m.copy_bytes_per_ns,
          1 / m.reduce_bytes_per_ns,
          m.native.chunk_bytes,
          std::max(m.native.window_bytes, m.native.chunk_bytes),
          m.native.eager_bytes,
          true};
}

void TransferEngine::add(uint32_t operation, std::vector<Part> parts) {
  for (Part& part : parts) {
    graph::Graph& graph = part.graph;
    graph.seal();
    part.exports.resize(graph.exports.size());
    part.exports_after.resize(graph.steps.size());
    for (uint32_t i = 0; i < graph.exports.size(); ++i) {
      if (graph.exports[i].after != graph::kNoStep) part.exports_after[graph.exports[i].after].push_back(i);
    }
    for (uint32_t i = 0; i < graph.steps.size(); ++i) {
      const graph::Step& step = graph.steps[i];
      part.waits.push_back(step.waits);
      if (step.kind == graph::StepKind::pull) part.step_of[key(step.peer, step.tag)] = i;
    }
    part.left = static_cast<uint32_t>(graph.steps.size() + graph.exports.size());
    part.operation = operation;
  }
  operations_.emplace(operation, std::move(parts));
}

uint64_t TransferEngine::connection(const Agent* from, const Agent* to) {
  return connections_.try_emplace({from, to}, connections_.size()).first->second;
}

// `cost_ns` is what each side spends on it.
void TransferEngine::message(Part& from, Part& to, double bytes, double cost_ns, Action action, Turn turn) {
  from.agent->handle(cost_ns, [this, &from, &to, bytes, cost_ns, turn, act = std::move(action)] {
    const auto arrived = [&to, cost_ns, act] { to.agent->handle(cost_ns, act); };
    if (from.agent->node() == to.agent->node()) return arrived();
    turn == Turn::overtakes ? send(from, to, bytes, arrived) : send_in_turn(from, to, bytes, arrived);
  });
}

void TransferEngine::send(const Part& from, const Part& to, double bytes, Action arrived) {
  network_.send(connection(from.agent, to.agent), from.agent->route_to(*to.agent), bytes, std::move(arrived));
}

void TransferEngine::begin(Part& part) {
  part.posted = true;
  const double count = static_cast<double>(part.graph.steps.size() + part.graph.exports.size());
  part.agent->handle(part.costs->operation_ns + part.costs->step_ns * count, [this, &part] {
    for (uint32_t i = 0; i < part.exports.size(); ++i) {
      if (part.graph.exports[i].after == graph::kNoStep) make_ready(part, i);
    }
    for (uint32_t i = 0; i < part.waits.size(); ++i) {
      if (part.graph.steps[i].waits == 0) start_step(part, i);
    }
    end_if_done(part);
  });
}

void TransferEngine::request(Part& origin, Part& target) {
  target.posted = true;
  message(
      origin, target, machine_.header_bytes, origin.costs->message_ns, [this, &target] { begin(target); }, Turn::waits);
}

void TransferEngine::start_step(Part& part, uint32_t step) {
  const graph::Step& s = part.graph.steps[step];
  if (s.kind == graph::StepKind::pull) return start_pull(part, step);
  const double cost = s.kind == graph::StepKind::copy ? part.costs->copy_ns_per_byte : part.costs->reduce_ns_per_byte;
  work(part, static_cast<double>(s.bytes), cost, [this, &part, step] { finish_step(part, step); });
}

// In chunks, so that other work of the agent comes in between.
void TransferEngine::work(Part& part, double bytes, double ns_per_byte, Action done) {
  if (bytes <= 0) return done();
  const double chunk = std::min(bytes, part.costs->chunk_bytes);
  part.agent->handle(chunk * ns_per_byte, [this, &part, bytes, chunk, ns_per_byte, act = std::move(done)] {
    work(part, bytes - chunk, ns_per_byte, act);
  });
}

void TransferEngine::start_pull(Part& part, uint32_t step) {
  const graph::Step& s = part.graph.steps[step];
  const uint64_t pull = key(s.peer, s.tag);
  PullState& state = part.pulls[pull];
  state.wanted = true;
  Part& peer = peer_of(part, s.peer);
  if (state.arrived) return receive(part, pull);
  if (is_native(part) && !state.offered) return;
  // Asks for it: service, or native after an announcement.
  const uint64_t asked = key(part.member, s.tag);
  message(part, peer, machine_.header_bytes, part.costs->message_ns, [this, &peer, asked] {
    const auto index = peer.graph.find_export(static_cast<uint32_t>(asked >> 32), static_cast<uint32_t>(asked));
    if (index == graph::kNoStep) return;
    peer.exports[index].served = true;
    if (!goes_at_once(peer, peer.graph.exports[index])) serve(peer, index);
  });
}

void TransferEngine::make_ready(Part& part, uint32_t index) {
  part.exports[index].ready = true;
  const graph::Export& e = part.graph.exports[index];
  if (goes_at_once(part, e)) return send_at_once(part, index);
  if (!is_native(part)) return serve(part, index);
  Part& peer = peer_of(part, e.peer);
  const uint64_t pull = key(part.member, e.tag);
  message(part, peer, machine_.header_bytes, part.costs->message_ns, [this, &peer, pull] {
    PullState& state = peer.pulls[pull];
    state.offered = true;
    if (state.wanted) start_pull(peer, peer.step_of.at(pull));
  });
}

// Inside a node the service's receiver copies.
bool TransferEngine::goes_at_once(const Part& part, const graph::Export& block) {
  const bool may = is_native(part) || part.agent->node() != peer_of(part, block.peer).agent->node();
  return may && static_cast<double>(block.bytes) <= part.costs->eager_bytes;
}

void TransferEngine::send_at_once(Part& part, uint32_t index) {
  const graph::Export& e = part.graph.exports[index];
  Part& peer = peer_of(part, e.peer);
  const uint64_t pull = key(part.member, e.tag);
  const double bytes = static_cast<double>(e.bytes);
  const Costs& costs = *part.costs;
  part.agent->handle(costs.message_ns + bytes * costs.send_ns_per_byte, [this, &part, &peer, index, pull, bytes] {
    const auto arrived = [this, &peer, pull, bytes] {
      peer.agent->handle(peer.costs->message_ns + bytes * peer.costs->receive_ns_per_byte, [this, &peer, pull] {
        peer.pulls[pull].arrived = true;
        if (peer.pulls[pull].wanted) receive(peer, pull);
      });
    };
    take(part, index);
    if (part.agent->node() == peer.agent->node()) return arrived();
    send_in_turn(part, peer, machine_.header_bytes + bytes / machine_.wire_efficiency, arrived);
  });
}

// Asked for and ready: the block goes.
void TransferEngine::serve(Part& part, uint32_t index) {
  if (!part.exports[index].ready || !part.exports[index].served) return;
  const graph::Export& e = part.graph.exports[index];
  Part& peer = peer_of(part, e.peer);
  const uint64_t pull = key(part.member, e.tag);
  if (part.agent->node() != peer.agent->node()) return stream(part, index);
  // Inside the node the receiver copies from one process to the other.
  message(part, peer, 0, part.costs->message_ns / 2, [this, &part, &peer, index, pull] {
    const double bytes = static_cast<double>(part.graph.exports[index].bytes);
    work(peer, bytes, peer.costs->copy_ns_per_byte, [this, &part, &peer, index, pull] {
      receive(peer, pull);
      peer.agent->handle(0, [this, &part, index] { take(part, index); });
    });
  });
}

// Native MPI's short messages with data do not overtake pieces of long ones that it has queued for the same socket.
void TransferEngine::send_in_turn(const Part& from, const Part& to, double bytes, Action arrived) {
  const auto socket = sockets_.find({from.agent, to.agent});
  if (socket == sockets_.end()) return send(from, to, bytes, std::move(arrived));
  Window& window = *socket->second;
  double queued_bytes = 0;
  for (const auto& stream : window.queue) {
    queued_bytes += std::min(stream->left_bytes, kQueuedPieces * from.costs->chunk_bytes);
  }
  if (queued_bytes <= 0) return send(from, to, bytes, std::move(arrived));
  window.behind.emplace_back(window.handed_bytes + queued_bytes,
                             [this, &from, &to, bytes, act = std::move(arrived)] { send(from, to, bytes, act); });
}

std::shared_ptr<Window> TransferEngine::window_for(const Part& from, const Part& to) {
  if (!is_native(from)) return std::make_shared<Window>();
  auto& window = sockets_[{from.agent, to.agent}];
  if (!window) window = std::make_shared<Window>();
  return window;
}

void TransferEngine::stream(Part& part, uint32_t index) {
  const graph::Export& e = part.graph.exports[index];
  Part& peer = peer_of(part, e.peer);
  const uint64_t pull = key(part.member, e.tag);
  const auto state = std::make_shared<Stream>(Stream{static_cast<double>(e.bytes)});
  const auto window = window_for(part, peer);
  std::erase_if(window->queue, [](const auto& stream) { return stream->left_bytes <= 0; });
  window->queue.push_back(state);
  const auto pump = std::make_shared<std::function<void()>>();
  const std::weak_ptr<std::function<void()>> again = pump;
  const double header = machine_.header_bytes, efficiency = machine_.wire_efficiency;
  *pump = [=, this, &part, &peer] {
    const auto self = again.lock();
    if (!self || state->sending || state->left_bytes <= 0) return;
    if (window->in_flight_bytes > 0 && window->in_flight_bytes + part.costs->chunk_bytes > part.costs->window_bytes) {
      window->waiting.push_back([self] { (*self)(); });
      return;
    }
    const double chunk = std::min(state->left_bytes, part.costs->chunk_bytes);
    state->left_bytes -= chunk;
    window->in_flight_bytes += chunk;
    state->sending = true;
    const bool last = state->left_bytes <= 0;
    const Costs& out = *part.costs;
    part.agent->handle(out.message_ns + chunk * out.send_ns_per_byte, [=, this, &part, &peer] {
      state->sending = false;
      const auto arrived = [=, this, &part, &peer] {
        const Costs& in = *peer.costs;
        peer.agent->handle(in.message_ns + chunk * in.receive_ns_per_byte, [=, this, &part, &peer] {
          window->in_flight_bytes -= chunk;
          for (const Action& next : std::exchange(window->waiting, {})) next();
          if (!last) return;
          receive(peer, pull);
          // Service: the receiver says done. Native: its sender has known since the last chunk left.
          if (!is_native(peer)) {
            message(peer, part, machine_.header_bytes, peer.costs->message_ns,
                    [this, &part, index] { take(part, index); });
          }
        });
      };
      send(part, peer, header + chunk / efficiency, arrived);
      window->handed_bytes += chunk;
      while (!window->behind.empty() && window->behind.front().first <= window->handed_bytes + kNothingBytes) {
        const Action next = std::move(window->behind.front().second);
        window->behind.pop_front();
        next();
      }
      if (last && is_native(part)) take(part, index);
      (*self)();
    });
  };
  (*pump)();
}

void TransferEngine::receive(Part& part, uint64_t pull) {
  PullState& state = part.pulls[pull];
  if (state.finished) return;
  state.finished = true;
  finish_step(part, part.step_of.at(pull));
}

void TransferEngine::finish_step(Part& part, uint32_t step) {
  --part.left;
  for (const uint32_t index : part.exports_after[step]) make_ready(part, index);
  for (const uint32_t next : part.graph.steps[step].next) {
    if (--part.waits[next] == 0) start_step(part, next);
  }
  end_if_done(part);
}

void TransferEngine::take(Part& part, uint32_t index) {
  --part.left;
  for (const uint32_t next : part.graph.exports[index].next) {
    if (--part.waits[next] == 0) start_step(part, next);
  }
  end_if_done(part);
}

void TransferEngine::end_if_done(Part& part) {
  if (part.left > 0 || part.done) return;
  part.done = true;
  part.done_ns = events_.now_ns();
  on_done_(part);
}

}  // namespace offpath::model
