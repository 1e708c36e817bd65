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
  std::vector<engine::WorkerAddress> workers;
  ops::Topology topology;
  uint64_t teams = 0, operations = 0;
  uint64_t parts = 0;  // of the largest graph of the last operation

  // What has been spent so far, and then since.
  Spent mark() const { return {world.events.now_ns(), world.messages, world.bytes, 0, 0, world.events.handled()}; }
  void count_since(Spent& spent) const {
    spent.messages = world.messages - spent.messages;
    spent.bytes = world.bytes - spent.bytes;
    spent.events = world.events.handled() - spent.events;
  }
  base::Status join(uint32_t member);
  base::Status post(model::Operation operation, graph::Ends ends, const std::vector<double>& begins_ns);
  void come_to_rest();
};

base::Status Many::State::join(uint32_t member) {
  for (size_t known = workers.size(); known < members.size(); ++known)
    workers.push_back({false, 0, address_of(members[known])});
  wire::TeamId id;
  memcpy(id.bytes.data(), &teams, sizeof(teams));
  std::vector<uint8_t> address = std::exchange(workers[member].address, {});
  workers[member].local = true;
  auto handle = world.services[member]->engine().add_team({id, member, engine::Roster(workers), member, 0});
  workers[member] = {false, 0, std::move(address)};
  if (!handle.ok()) return handle.status();
  handles[member] = handle.value();
  return {};
}

// `begins_ns` empty: all at once.
base::Status Many::State::post(model::Operation operation, graph::Ends ends, const std::vector<double>& begins_ns) {
  operation.members = members;
  operation.path = policy::Path::dpu;
  world.ended = parts = 0;
  const uint64_t number = operations++;
  for (const uint32_t member : members) {
    Service& service = *world.services[member];
    service.fate().status.reset();
    topology.rank = member;
    auto graph = model::service_graph(operation, topology, true);
    if (!graph.ok()) return graph.status();
    graph->ends = ends;
    parts = std::max<uint64_t>(parts, graph->steps.size() + graph->exports.size());
    const auto shared = std::make_shared<graph::Graph>(std::move(graph.value()));  // actions are copied
    const auto begin = [this, &service, member, number, shared] {
      service.begin([this, &service, member, number, shared] {
        if (handles[member] == 0) world.problem = join(member);
        service.engine().post(handles[member], number, std::move(*shared), 0);
      });
    };
    begins_ns.empty() ? begin() : world.events.after(begins_ns[member], begin);
  }
  return {};
}

void Many::State::come_to_rest() {
  for (bool more = true; more;) {
    while (world.events.step()) {
    }
    for (const auto& service : world.services) service->say_rest();
    more = world.events.step();
  }
}

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
  expect_team();
  for (const uint32_t member : state_->members) {
    if (const base::Status joined = state_->join(member); !joined.ok()) return joined;
  }
  return {};
}

void Many::expect_team() {
  ++state_->teams;
  state_->handles.assign(state_->members.size(), 0);
  state_->operations = 0;
}

base::Result<Spent> Many::run(model::Operation operation, graph::Ends ends) {
  World& world = state_->world;
  std::vector<uint64_t> said;
  for (const uint32_t member : state_->members) said.push_back(world.services[member]->messages());
  Spent spent = state_->mark();
  if (const base::Status posted = state_->post(std::move(operation), ends, {}); !posted.ok()) return posted;
  spent.parts = state_->parts;
  while (world.ended < state_->members.size() && world.problem.ok() && world.events.step()) {
  }
  spent.ns = world.events.now_ns() - spent.ns;
  state_->come_to_rest();
  if (!world.problem.ok()) return world.problem;
  if (world.ended < state_->members.size()) return base::Status::error(OFFPATH_ERR_STATE, "it never ends");
  state_->count_since(spent);
  for (const uint32_t member : state_->members) {
    spent.most_messages = std::max(spent.most_messages, world.services[member]->messages() - said[member]);
  }
  return spent;
}

void Many::be_mortal() { state_->world.mortal = true; }

base::Result<Spent> Many::run(const model::Operation& operation, graph::Ends ends, const std::vector<double>& begins_ns,
                              const std::vector<Death>& deaths) {
  World& world = state_->world;
  Spent spent = state_->mark();
  for (const Death& death : deaths) {
    world.events.after(death.ns, [&service = *world.services[death.service]] { service.die(); });
  }
  if (const base::Status posted = state_->post(operation, ends, begins_ns); !posted.ok()) return posted;
  state_->come_to_rest();
  spent.ns = world.events.now_ns() - spent.ns;
  state_->count_since(spent);
  return spent;
}

const Fate& Many::fate(uint32_t member) const { return state_->world.services[member]->fate(); }
size_t Many::connections(uint32_t member) const { return state_->world.services[member]->connected_count(); }
double Many::now_ns() const { return state_->world.events.now_ns(); }

uint64_t Many::allocated_bytes() { return allocated; }

}  // namespace engine_bench
