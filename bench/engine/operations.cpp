// SPDX-License-Identifier: BSD-3-Clause
// Operations of two members through two engines, or one, and nothing else: a network inside the process, memory in reach.
// For counting instructions (docs/performance/wire.md): valgrind --tool=callgrind, twice, and the difference per operation.
//   engine_operations near|far|put BYTES OPERATIONS
#include "engine/engine.hpp"
#include "fabric/loopback/loopback.hpp"
#include "ops/onesided/target.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using namespace offpath;

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

struct Node : engine::Observer, engine::Neighbours {
  explicit Node(fabric::LoopbackNetwork& network)
      : fabric(network.make_endpoint()), engine(config(), *fabric, *this, *this) {
    engine.set_responder(&target);
  }
  static engine::Config config() {
    engine::Config config;
    config.worker = 0;
    return config;
  }
  void on_step(engine::ClientId, uint64_t, uint32_t, uint64_t, bool) override {}
  void on_served(engine::ClientId, uint64_t, uint32_t, uint64_t, bool) override {}
  void on_finished(engine::ClientId, uint64_t, base::Status status) override { ++(status.ok() ? ended : failed); }
  void on_member_lost(engine::ClientId, uint64_t, uint32_t, engine::Loss) override {}
  void send(uint32_t, const wire::Message&, fabric::Bytes) override { abort(); }
  void offer(uint32_t, uint64_t, std::shared_ptr<memory::Port>, uint64_t, uint64_t) override { abort(); }

  std::unique_ptr<fabric::Fabric> fabric;
  engine::Engine engine;
  ops::onesided::Target target{
      [this](graph::RequestId id, graph::Answer answer) { engine.answer(id, std::move(answer)); }};
  uint64_t ended = 0, failed = 0;
};

graph::Graph exchange(uint32_t other, const std::vector<uint8_t>& from, const std::vector<uint8_t>& to) {
  graph::Graph graph;
  graph.offer(other, 0, graph::client_place(address_of(from.data())), from.size());
  graph.pull(other, 0, graph::client_place(address_of(to.data())), to.size());
  return graph;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const bool near = strcmp(argv[1], "near") == 0, put = strcmp(argv[1], "put") == 0;
  const size_t bytes = strtoull(argv[2], nullptr, 0), operations = strtoull(argv[3], nullptr, 0);
  fabric::LoopbackNetwork network(1);
  Node first(network), second(network);
  Node* const nodes[2] = {&first, near ? &first : &second};
  std::vector<uint8_t> from[2], to[2];
  engine::TeamHandle team[2];
  for (uint32_t rank = 0; rank < 2; ++rank) {
    from[rank].assign(bytes, 1), to[rank].assign(bytes, 0);
    nodes[rank]->engine.add_client(rank + 1, memory::make_direct());
    engine::TeamSpec spec;
    spec.rank = rank;
    spec.client = rank + 1;
    spec.members = {{nodes[0] == nodes[rank], 0, nodes[0]->fabric->address()},
                    {nodes[1] == nodes[rank], 0, nodes[1]->fabric->address()}};
    team[rank] = nodes[rank]->engine.add_team(std::move(spec)).value();
  }
  if (put && !second.target.open(2, 0, 1, address_of(to[1].data()), bytes, false).ok()) return 1;
  const auto settle = [&](uint64_t ended) {
    while (first.ended + second.ended < ended) first.engine.progress(), second.engine.progress();
  };
  for (uint64_t i = 0; i < operations; ++i) {
    if (put) {
      ops::onesided::Remote remote;
      remote.target = 1;
      remote.wanted.window = 1, remote.wanted.bytes = bytes;
      remote.send = {0, 0, address_of(from[0].data()), bytes};
      remote.has_data = bytes <= 64;  // as clients do
      remote::encode(remote.wanted, remote.has_data ? std::span(from[0]) : std::span<uint8_t>(), remote.body);
      first.engine.post_request(team[0], ops::onesided::make_request(std::move(remote)), i);
    }
    for (uint32_t rank = 0; rank < 2 && !put; ++rank) {
      nodes[rank]->engine.post(team[rank], i, exchange(1 - rank, from[rank], to[rank]), i);
    }
    settle((put ? 1 : 2) * (i + 1));
  }
  printf("%s of %zu bytes: %zu operations, %llu failed\n", argv[1], bytes, operations,
         static_cast<unsigned long long>(first.failed + second.failed));
  return first.failed + second.failed == 0 && (!put || to[1] == from[0]) ? 0 : 1;
}
