// SPDX-License-Identifier: BSD-3-Clause
#include "many.hpp"

#include "many_service.hpp"

#include <malloc.h>

#include <algorithm>
#include <new>

namespace {
uint64_t allocated = 0;
}  // namespace

// All that C++ allocates passes here, but for what wants an alignment: that is the engine's chunks.
void* operator new(size_t bytes) {
  void* const memory = malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  allocated += malloc_usable_size(memory);
  return memory;
}
void operator delete(void* memory) noexcept {
  allocated -= memory == nullptr ? 0 : malloc_usable_size(memory);
  free(memory);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }

namespace engine_bench {

struct Many::State {
  World world;
  std::vector<engine::TeamHandle> handles;  // by service, of the team that is used
  std::vector<uint32_t> members;
  ops::Topology topology;
  uint64_t teams = 0, operations = 0;
};

model::Machine Many::default_machine() {
  model::Machine machine;
  machine.rate_bytes_per_ns = 12.5;
  machine.peak_bytes_per_ns = machine.rate_bytes_per_ns;
  machine.latency_ns = 2000;
  machine.service.own_cores = true;
  return machine;
}

Many::Many(uint32_t services, const model::Machine& machine) : state_(std::make_unique<State>()) {
  World& world = state_->world;
  world.machine = machine;
  world.anything.resize(static_cast<size_t>(machine.service.chunk_bytes));
  std::vector<uint64_t> nodes;
  for (uint32_t number = 0; number < services; ++number) {
    world.services.push_back(std::make_unique<Service>(world, number));
    state_->members.push_back(number);
    nodes.push_back(number);
  }
  state_->topology = ops::Topology::make(0, nodes);
}

Many::~Many() = default;

base::Status Many::add_team() {
  World& world = state_->world;
  std::vector<engine::WorkerAddress> workers;
  for (const uint32_t member : state_->members) workers.push_back({false, 0, address_of(member)});
  wire::TeamId id;
  ++state_->teams;
  memcpy(id.bytes.data(), &state_->teams, sizeof(state_->teams));
  state_->handles.clear();
  state_->operations = 0;
  for (const uint32_t member : state_->members) {
    std::vector<uint8_t> address = std::exchange(workers[member].address, {});
    workers[member].local = true;
    auto handle = world.services[member]->engine().add_team({id, member, engine::Roster(workers), member, 0});
    if (!handle.ok()) return handle.status();
    state_->handles.push_back(handle.value());
    workers[member] = {false, 0, std::move(address)};
  }
  return {};
}

base::Result<Spent> Many::run(model::Operation operation, graph::Ends ends) {
  World& world = state_->world;
  operation.members = state_->members;
  operation.path = policy::Path::dpu;
  Spent before{world.events.now_ns(), world.messages, world.bytes, 0, 0, world.events.handled()}, spent;
  std::vector<uint64_t> said;
  world.ended = 0;
  const uint64_t number = state_->operations++;
  for (const uint32_t member : state_->members) {
    Service& service = *world.services[member];
    said.push_back(service.messages());
    state_->topology.rank = member;
    auto graph = model::service_graph(operation, state_->topology, true);
    if (!graph.ok()) return graph.status();
    graph->ends = ends;
    spent.parts = std::max<uint64_t>(spent.parts, graph->steps.size() + graph->exports.size());
    const auto shared = std::make_shared<graph::Graph>(std::move(graph.value()));  // actions are copied
    service.begin([&service, handle = state_->handles[member], number, shared] {
      service.engine().post(handle, number, std::move(*shared), 0);
    });
  }
  while (world.ended < state_->members.size() && world.problem.ok() && world.events.step()) {
  }
  spent.ns = world.events.now_ns() - before.ns;
  for (bool more = true; more;) {
    while (world.events.step()) {
    }
    for (const auto& service : world.services) service->say_rest();
    more = world.events.step();
  }
  if (!world.problem.ok()) return world.problem;
  if (world.ended < state_->members.size()) return base::Status::error(OFFPATH_ERR_STATE, "it never ends");
  spent.messages = world.messages - before.messages;
  spent.bytes = world.bytes - before.bytes;
  spent.events = world.events.handled() - before.events;
  for (const uint32_t member : state_->members) {
    spent.most_messages = std::max(spent.most_messages, world.services[member]->messages() - said[member]);
  }
  return spent;
}

uint64_t Many::allocated_bytes() { return allocated; }

}  // namespace engine_bench
