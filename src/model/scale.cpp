// SPDX-License-Identifier: BSD-3-Clause
#include "model/scale.hpp"

#include "wire/message.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

namespace offpath::model {
namespace {

using base::Result;
using policy::Collective;
using policy::Path;

constexpr uint32_t kMembersLookedAt = 4;  // of a node; they are alike

uint32_t rounds_of_tree(uint32_t nodes) { return static_cast<uint32_t>(std::bit_width(nodes - 1)); }

// What a node has to do.
struct Load {
  double in_bytes = 0, out_bytes = 0;  // on the wire
  double agent_ns = 0;                 // all agents of the node together
  double longest_bytes = 0;            // of what crosses the wire in one piece
};

class Pricing {
 public:
  Pricing(const Machine& machine, const Operation& operation, uint32_t nodes, uint32_t ppn)
      : m_(machine), operation_(operation), dpu_(operation.path == Path::dpu), nodes_(nodes), ppn_(ppn) {
    for (uint32_t rank = 0; rank < nodes * ppn; ++rank) keys_.push_back(rank / ppn);
    topology_ = ops::Topology::make(0, keys_);
  }

  Result<Price> price() {
    Load busiest;
    // Roots and ends of chains are the exceptions; node 0 is the root.
    for (const uint32_t node : std::set<uint32_t>{0, 1 % nodes_, nodes_ / 2, nodes_ - 1}) {
      auto load = load_of(node);
      if (!load.ok()) return load.status();
      busiest.in_bytes = std::max(busiest.in_bytes, load->in_bytes);
      busiest.out_bytes = std::max(busiest.out_bytes, load->out_bytes);
      busiest.agent_ns = std::max(busiest.agent_ns, load->agent_ns);
      busiest.longest_bytes = std::max(busiest.longest_bytes, load->longest_bytes);
    }
    Price result;
    result.wire_ns = std::max(busiest.in_bytes, busiest.out_bytes) / m_.rate_bytes_per_ns;
    result.agent_ns = dpu_ ? busiest.agent_ns / m_.service.speed : busiest.agent_ns / ppn_;
    result.hides = dpu_ || !asks(busiest.longest_bytes);
    const double busy_ns = std::max(result.wire_ns, result.agent_ns);
    const Chain chain = chain_of();
    result.hops = chain.hops;
    const double piece = busiest.longest_bytes;
    result.hops_ns = chain.hops * hop_ns(piece);
    // A pipeline fills hop by hop and then runs at the speed of its busiest link; steps that follow each other do not.
    const double fill_ns = chain.fill * hop_ns(piece) + (chain.fill > 0 ? -piece / m_.rate_bytes_per_ns : 0);
    result.total_ns = start_ns(piece) + std::max(busy_ns + fill_ns, result.hops_ns);
    return result;
  }

 private:
  struct Chain {
    uint32_t hops = 0;  // that nothing overlaps
    uint32_t fill = 0;  // before the busiest node is busy
  };

  Result<graph::Graph> graph_of(uint32_t rank) {
    topology_.rank = rank;
    if (dpu_) return service_graph(operation_, topology_, m_.service.own_cores);
    return native_graph(operation_, topology_, m_.native);
  }

  Result<Load> load_of(uint32_t node) {
    Load load;
    const uint32_t members = std::min(ppn_, kMembersLookedAt);
    for (uint32_t i = 0; i < members; ++i) {
      auto graph = graph_of(node * ppn_ + i * (ppn_ / members));
      if (!graph.ok()) return graph.status();
      add(graph.value(), node, load);
    }
    const double all = static_cast<double>(ppn_) / members;
    load.in_bytes *= all;
    load.out_bytes *= all;
    load.agent_ns *= all;
    return load;
  }

  void add(const graph::Graph& graph, uint32_t node, Load& load) const {
    const double step_ns = dpu_ ? m_.service.step_ns : 0;
    load.agent_ns += static_cast<double>(graph.steps.size() + graph.exports.size()) * step_ns;
    load.agent_ns += dpu_ ? m_.service.operation_ns : m_.native.post_ns;
    for (const graph::Step& step : graph.steps) {
      const auto bytes = static_cast<double>(step.bytes);
      if (step.kind == graph::StepKind::multicast) {
        load.in_bytes += on_wire(bytes);
        for (const auto& piece : step.multicast->parts[step.multicast->own]) {
          load.out_bytes += on_wire(static_cast<double>(piece.bytes));
          load.agent_ns += moved_ns(static_cast<double>(piece.bytes), m_.service.send_ns_per_byte);
        }
        load.agent_ns += moved_ns(bytes, m_.service.receive_ns_per_byte);
      } else if (step.kind == graph::StepKind::reduce) {
        load.agent_ns += bytes / m_.reduce_bytes_per_ns;
      } else if (step.kind == graph::StepKind::copy || topology_.node_of(step.peer) == node) {
        load.agent_ns += bytes / (dpu_ ? m_.cma_bytes_per_ns : m_.copy_bytes_per_ns);
      } else {
        load.in_bytes += on_wire(bytes);
        load.agent_ns += moved_ns(bytes, dpu_ ? m_.service.receive_ns_per_byte : m_.native.receive_ns_per_byte);
        load.longest_bytes = std::max(load.longest_bytes, bytes);
      }
    }
    for (const graph::Export& e : graph.exports) {
      if (topology_.node_of(e.peer) == node) continue;
      const auto bytes = static_cast<double>(e.bytes);
      load.out_bytes += on_wire(bytes);
      load.agent_ns += moved_ns(bytes, dpu_ ? m_.service.send_ns_per_byte : m_.native.send_ns_per_byte);
      load.longest_bytes = std::max(load.longest_bytes, bytes);
    }
  }

  double chunk_bytes() const { return dpu_ ? m_.service.chunk_bytes : m_.native.chunk_bytes; }
  double message_ns() const { return dpu_ ? m_.service.message_ns / m_.service.speed : m_.native.message_ns; }
  bool asks(double bytes) const {
    return bytes > (dpu_ ? static_cast<double>(wire::kPushedBytes) : m_.native.eager_bytes);
  }
  double messages(double bytes) const {
    return std::max(1.0, std::ceil(bytes / chunk_bytes())) + (asks(bytes) ? 2 : dpu_ ? 1 : 0);
  }
  double on_wire(double bytes) const { return bytes / m_.wire_efficiency + messages(bytes) * m_.header_bytes; }
  double moved_ns(double bytes, double ns_per_byte) const {
    return messages(bytes) * (dpu_ ? m_.service.message_ns : m_.native.message_ns) + bytes * ns_per_byte;
  }

  // From the moment a block is there to the moment that the next node has it.
  double hop_ns(double bytes) const {
    const double chunk = std::min(bytes, chunk_bytes());
    const double speed = dpu_ ? m_.service.speed : 1;
    const double ends = chunk *
                        (dpu_ ? m_.service.send_ns_per_byte + m_.service.receive_ns_per_byte
                              : m_.native.send_ns_per_byte + m_.native.receive_ns_per_byte) /
                        speed;
    const double asking = !dpu_ && asks(bytes) ? 2 * (m_.latency_ns + 2 * message_ns()) : 0;
    const double waking = dpu_ ? m_.service.wake_ns : 0;
    return asking + waking + m_.latency_ns + 2 * message_ns() + ends +
           bytes / m_.wire_efficiency / m_.rate_bytes_per_ns;
  }

  // From the post to the first byte on its way, and from the last one to the waiting rank.
  double start_ns(double bytes) const {
    if (!dpu_) return m_.native.post_ns + m_.latency_ns;
    const Service& s = m_.service;
    const double asking = asks(bytes) ? s.wake_ns + 2 * (m_.latency_ns + 2 * message_ns()) : 0;
    return s.post_ns + (s.operation_ns + s.step_ns) / s.speed + s.wake_ns + asking + s.host_wake_ns;
  }

  Chain chain_of() {
    const uint32_t n = dpu_ ? nodes_ : nodes_ * ppn_;  // who pass data on: services to services, or ranks to ranks
    if (nodes_ < 2) return {};
    const uint32_t tree = rounds_of_tree(n);
    return dpu_ ? service_chain(n, tree) : native_chain(n, tree);
  }

  Chain service_chain(uint32_t n, uint32_t tree) {
    offpath_algorithm_t algorithm = operation_.algorithm;
    if (algorithm == OFFPATH_ALGORITHM_DEFAULT) algorithm = default_algorithm();
    switch (operation_.kind) {
      case Collective::ibarrier:
        return {tree, 0};
      case Collective::ibcast:
        if (algorithm == OFFPATH_ALGORITHM_CHAIN) return {n - 1, n - 2};
        return algorithm == OFFPATH_ALGORITHM_BINOMIAL ? Chain{tree, 0} : Chain{2, 1};
      case Collective::iallgather:
      case Collective::iallgatherv:
        return algorithm == OFFPATH_ALGORITHM_RING ? Chain{n - 1, 0} : Chain{1, 0};
      case Collective::iallreduce:
        if (algorithm == OFFPATH_ALGORITHM_RING) return {2 * (n - 1), 0};
        return algorithm == OFFPATH_ALGORITHM_DOUBLING ? Chain{tree, 0} : Chain{2, 1};
      case Collective::ireduce:
        return algorithm == OFFPATH_ALGORITHM_BINOMIAL ? Chain{tree, 0} : Chain{2, 1};
      case Collective::iscan:
      case Collective::iexscan:
        return algorithm == OFFPATH_ALGORITHM_CHAIN ? Chain{n - 1, n - 2} : Chain{tree, 0};
      default:
        return {1, 0};
    }
  }

  Chain native_chain(uint32_t n, uint32_t tree) const {
    const bool mpich = m_.native.family == "mpich";
    switch (operation_.kind) {
      case Collective::ibarrier:
        return {tree, 0};
      case Collective::ibcast: {
        if (mpich) return operation_.bytes >= (64 << 10) ? Chain{tree + n - 1, 0} : Chain{tree, 0};
        if (n <= 4) return {1, 0};
        return operation_.bytes >= (512 << 10) ? Chain{n - 1, n - 2} : Chain{tree, 0};
      }
      case Collective::iallgather:
      case Collective::iallgatherv:
        return mpich ? Chain{n - 1, 0} : Chain{1, 0};
      case Collective::iallreduce:
        if (mpich) return {2 * tree, 0};
        return n < 4 || operation_.bytes < (64 << 10) ? Chain{2 * tree, 0} : Chain{2 * (n - 1), 0};
      case Collective::ireduce:
        return {tree, 0};
      case Collective::ireduce_scatter:
      case Collective::ireduce_scatter_block:
        return mpich ? Chain{n - 1, 0} : Chain{tree + 1, 0};
      case Collective::iscan:
      case Collective::iexscan:
        return {n - 1, 0};
      default:
        return is_pairwise(operation_, n, m_.native) ? Chain{n - 1, 0} : Chain{1, 0};
    }
  }

  // The expansions' own choice.
  offpath_algorithm_t default_algorithm() const {
    ops::Collective collective;
    collective.send = {{0, 0, {}, operation_.bytes}};
    collective.kind = policy::kind_of(operation_.kind);
    return ops::resolve_algorithm(collective, topology_);
  }

  const Machine& m_;
  const Operation& operation_;
  const bool dpu_;
  const uint32_t nodes_, ppn_;
  std::vector<uint64_t> keys_;
  ops::Topology topology_;
};

}  // namespace

Result<Price> price(const Machine& machine, const Operation& operation, uint32_t nodes, uint32_t ppn) {
  return Pricing(machine, operation, nodes, ppn).price();
}

}  // namespace offpath::model
