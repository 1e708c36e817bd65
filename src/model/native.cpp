// SPDX-License-Identifier: BSD-3-Clause
// What MPI libraries do with nonblocking collectives. Sources: Hoefler, Lumsdaine, Rehm (SC 2007) for the schedules of
// rounds in Open MPI; Thakur, Rabenseifner, Gropp (IJHPCA 2005) for the algorithms of MPICH.
#include "model/operation.hpp"

#include <algorithm>
#include <bit>

namespace offpath::model {
namespace {

using graph::kNoStep;
using policy::Collective;

constexpr uint64_t kShortBytes = 64 << 10;  // trees below, pipelines and rings from there on
constexpr uint64_t kLongBcastBytes = 512 << 10;
constexpr uint64_t kBcastSegmentBytes = 32 << 10;
constexpr uint64_t kPairwiseBytes = 32 << 10;  // of a block

const graph::Place kAnywhere = graph::client_place(uint64_t{1} << 44);

// Steps in rounds. A round begins when all messages of the one before have been sent and received.
class Rounds {
 public:
  explicit Rounds(graph::Graph& graph) : graph_(graph) { graph.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_F64}; }

  void send(uint32_t peer, uint64_t bytes) {
    if (bytes > 0) sent_.push_back(graph_.offer(peer, tag_of(sends_, peer), kAnywhere, bytes, gate_));
  }
  enum class Then { nothing, reduce };
  void receive(uint32_t peer, uint64_t bytes, Then then = Then::nothing) {
    if (bytes == 0) return;
    const uint32_t pull = graph_.pull(peer, tag_of(receives_, peer), kAnywhere, bytes);
    graph_.order(gate_, pull);
    received_.push_back(pull);
    if (then == Then::nothing) return;
    received_.push_back(graph_.reduce(kAnywhere, kAnywhere, kAnywhere, bytes));
    graph_.order(pull, received_.back());
  }
  void next() {
    if (sent_.empty() && received_.empty()) return;
    const uint32_t join = graph_.copy(kAnywhere, kAnywhere, 0);
    for (const uint32_t step : received_) graph_.order(step, join);
    for (const uint32_t index : sent_) graph_.order_after_taken(index, join);
    sent_.clear();
    received_.clear();
    gate_ = join;
  }

 private:
  // Both ends count the messages between them.
  static uint32_t tag_of(std::vector<uint32_t>& counts, uint32_t peer) {
    if (counts.size() <= peer) counts.resize(peer + size_t{1});
    return counts[peer]++;
  }

  graph::Graph& graph_;
  uint32_t gate_ = kNoStep;
  std::vector<uint32_t> sent_, received_, sends_, receives_;
};

struct Member {
  uint32_t rank, size;
  uint32_t behind(uint32_t distance) const { return (rank + size - distance % size) % size; }
  uint32_t ahead(uint32_t distance) const { return (rank + distance) % size; }
};

uint64_t share(uint64_t bytes, uint32_t size) { return (bytes + size - 1) / size; }

void bcast_binomial(Rounds& rounds, Member m, uint32_t root, uint64_t bytes) {
  const uint32_t place = m.behind(root);
  const uint32_t subtree = place == 0 ? std::bit_ceil(m.size) : place & -place;
  if (place != 0) rounds.receive((place - subtree + root) % m.size, bytes);
  rounds.next();
  for (uint32_t distance = subtree / 2; distance > 0; distance /= 2) {
    if (place + distance < m.size) rounds.send((place + distance + root) % m.size, bytes);
  }
  rounds.next();
}

void bcast_chain(Rounds& rounds, Member m, uint32_t root, uint64_t bytes) {
  const uint32_t place = m.behind(root);
  for (uint64_t done = 0; done < bytes; done += kBcastSegmentBytes) {
    const uint64_t segment = std::min(kBcastSegmentBytes, bytes - done);
    if (place > 0) {
      rounds.receive(m.behind(1), segment);
      rounds.next();
    }
    if (place + 1 < m.size) rounds.send(m.ahead(1), segment);
  }
  rounds.next();
}

void ring_allgather(Rounds& rounds, Member m, uint64_t block) {
  for (uint32_t round = 1; round < m.size; ++round) {
    rounds.send(m.ahead(1), block);
    rounds.receive(m.behind(1), block);
    rounds.next();
  }
}

// From the root to all, halving: the first part of van de Geijn's broadcast.
void binomial_scatter(Rounds& rounds, Member m, uint32_t root, uint64_t bytes) {
  const uint32_t place = m.behind(root);
  const uint32_t subtree = place == 0 ? std::bit_ceil(m.size) : place & -place;
  const auto parts = [&](uint32_t first, uint32_t count) {
    return share(bytes, m.size) * (std::min(first + count, m.size) - first);
  };
  if (place != 0) rounds.receive((place - subtree + root) % m.size, parts(place, subtree));
  rounds.next();
  for (uint32_t distance = subtree / 2; distance > 0; distance /= 2) {
    if (place + distance >= m.size) continue;
    rounds.send((place + distance + root) % m.size, parts(place + distance, distance));
    rounds.next();
  }
}

void bcast(Rounds& rounds, Member m, const Operation& operation, bool mpich) {
  const uint64_t bytes = operation.bytes;
  if (mpich && bytes >= kShortBytes && m.size > 2) {
    binomial_scatter(rounds, m, operation.root, bytes);
    ring_allgather(rounds, m, share(bytes, m.size));
  } else if (!mpich && m.size <= 4) {
    if (m.rank != operation.root) rounds.receive(operation.root, bytes);
    for (uint32_t peer = 0; peer < m.size && m.rank == operation.root; ++peer) {
      if (peer != m.rank) rounds.send(peer, bytes);
    }
    rounds.next();
  } else if (!mpich && bytes >= kLongBcastBytes) {
    bcast_chain(rounds, m, operation.root, bytes);
  } else {
    bcast_binomial(rounds, m, operation.root, bytes);
  }
}

void reduce_binomial(Rounds& rounds, Member m, uint32_t root, uint64_t bytes) {
  const uint32_t place = m.behind(root);
  for (uint32_t distance = 1; distance < m.size; distance *= 2) {
    if ((place & distance) != 0) {
      rounds.send((place - distance + root) % m.size, bytes);
      rounds.next();
      return;
    }
    if (place + distance < m.size) rounds.receive((place + distance + root) % m.size, bytes, Rounds::Then::reduce);
    rounds.next();
  }
}

// Reduce-scatter around the ring, then allgather around it.
void ring_allreduce(Rounds& rounds, Member m, uint64_t bytes) {
  const uint64_t part = share(bytes, m.size);
  for (uint32_t round = 1; round < m.size; ++round) {
    rounds.send(m.ahead(1), part);
    rounds.receive(m.behind(1), part, Rounds::Then::reduce);
    rounds.next();
  }
  ring_allgather(rounds, m, part);
}

// Recursive doubling or, for long vectors, halving and doubling; members beyond the power of two give theirs to a
// neighbour before and get the result after.
void doubling_allreduce(Rounds& rounds, Member m, uint64_t bytes, bool halves) {
  const uint32_t core = std::bit_floor(m.size);
  if (m.rank >= core) {
    rounds.send(m.rank - core, bytes);
    rounds.next();
    rounds.receive(m.rank - core, bytes);
    rounds.next();
    return;
  }
  const bool has_guest = m.rank + core < m.size;
  if (has_guest) rounds.receive(m.rank + core, bytes, Rounds::Then::reduce);
  rounds.next();
  uint64_t part = bytes;
  for (uint32_t distance = 1; distance < core; distance *= 2) {
    if (halves) part = share(part, 2);
    rounds.send(m.rank ^ distance, part);
    rounds.receive(m.rank ^ distance, part, Rounds::Then::reduce);
    rounds.next();
  }
  for (uint32_t distance = core / 2; halves && distance > 0; distance /= 2, part *= 2) {
    rounds.send(m.rank ^ distance, part);
    rounds.receive(m.rank ^ distance, part);
    rounds.next();
  }
  if (has_guest) rounds.send(m.rank + core, bytes);
  rounds.next();
}

void exchange(Rounds& rounds, Member m, const Operation& operation, bool pairwise) {
  for (uint32_t distance = 1; distance < m.size; ++distance) {
    rounds.receive(m.behind(distance), exchanged_bytes(operation, m.behind(distance), m.rank, m.size));
    rounds.send(m.ahead(distance), exchanged_bytes(operation, m.rank, m.ahead(distance), m.size));
    if (pairwise) rounds.next();
  }
}

void allgather(Rounds& rounds, Member m, const Operation& operation, bool mpich) {
  const auto block = [&](uint32_t member) {
    return operation.sent_bytes.empty() ? share(operation.bytes, m.size) : operation.sent_bytes[member].front();
  };
  for (uint32_t distance = 1; distance < m.size; ++distance) {
    rounds.receive(mpich ? m.behind(1) : m.behind(distance), block(m.behind(distance)));
    rounds.send(mpich ? m.ahead(1) : m.ahead(distance), block(mpich ? m.behind(distance - 1) : m.rank));
    if (mpich) rounds.next();
  }
}

void reduce_scatter(Rounds& rounds, Member m, const Operation& operation, bool mpich) {
  const uint64_t part = share(operation.bytes, m.size);
  if (mpich) {
    for (uint32_t distance = 1; distance < m.size; ++distance) {
      rounds.send(m.ahead(distance), part);
      rounds.receive(m.behind(distance), part, Rounds::Then::reduce);
      rounds.next();
    }
    return;
  }
  reduce_binomial(rounds, m, 0, operation.bytes);
  for (uint32_t peer = 1; peer < m.size && m.rank == 0; ++peer) rounds.send(peer, part);
  if (m.rank != 0) rounds.receive(0, part);
}

void scan(Rounds& rounds, Member m, uint64_t bytes) {
  if (m.rank > 0) rounds.receive(m.rank - 1, bytes, Rounds::Then::reduce);
  rounds.next();
  if (m.rank + 1 < m.size) rounds.send(m.rank + 1, bytes);
}

void barrier(Rounds& rounds, Member m) {
  for (uint32_t distance = 1; distance < m.size; distance *= 2) {
    rounds.send(m.ahead(distance), 1);
    rounds.receive(m.behind(distance), 1);
    rounds.next();
  }
}

}  // namespace

bool is_pairwise(const Operation& operation, uint32_t size, const Native& native) {
  return native.family == "mpich" && operation.kind == Collective::ialltoall &&
         share(operation.bytes, size) > kPairwiseBytes;
}

graph::Graph native_graph(const Operation& operation, const ops::Topology& topology, const Native& native) {
  graph::Graph graph;
  Rounds rounds(graph);
  const Member m{topology.rank, topology.size()};
  const bool mpich = native.family == "mpich";
  const uint64_t bytes = operation.bytes;
  if (operation.remote != Remote::none) {
    const uint32_t source = operation.remote == Remote::get ? 1 : 0;
    const uint64_t sent =
        operation.remote == Remote::message ? std::max<uint64_t>(bytes, 1) : bytes;  // an empty one, too
    if (m.rank == source) rounds.send(1 - source, sent);
    if (m.rank != source)
      rounds.receive(source, sent, operation.reduces ? Rounds::Then::reduce : Rounds::Then::nothing);
    return graph;
  }
  switch (operation.kind) {
    case Collective::ibarrier:
      barrier(rounds, m);
      break;
    case Collective::ibcast:
      bcast(rounds, m, operation, mpich);
      break;
    case Collective::iallgather:
    case Collective::iallgatherv:
      allgather(rounds, m, operation, mpich);
      break;
    case Collective::ireduce:
      reduce_binomial(rounds, m, operation.root, bytes);
      break;
    case Collective::iallreduce:
      if (mpich) {
        doubling_allreduce(rounds, m, bytes, bytes >= kShortBytes && m.size > 2);
      } else if (m.size < 4 || bytes < kShortBytes) {
        reduce_binomial(rounds, m, 0, bytes);
        bcast_binomial(rounds, m, 0, bytes);
      } else {
        ring_allreduce(rounds, m, bytes);
      }
      break;
    case Collective::ireduce_scatter:
    case Collective::ireduce_scatter_block:
      reduce_scatter(rounds, m, operation, mpich);
      break;
    case Collective::iscan:
    case Collective::iexscan:
      scan(rounds, m, bytes);
      break;
    default:
      exchange(rounds, m, operation, is_pairwise(operation, m.size, native));
  }
  rounds.next();
  return graph;
}

}  // namespace offpath::model
