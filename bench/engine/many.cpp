// SPDX-License-Identifier: BSD-3-Clause
#include "many.hpp"

#include "engine/engine.hpp"
#include "model/virtual_coder.hpp"
#include "model/virtual_memory.hpp"
#include "wire/message.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
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
namespace {

using namespace offpath;

constexpr size_t kAddressBytes = 48;  // of a service with one network

// A message under way, with its header and payload behind it. Of a block's payload only the length is.
struct Packet {
  uint32_t to, header_bytes, payload_bytes;
  bool is_block;
  uint64_t context;
  uint8_t* data() { return reinterpret_cast<uint8_t*>(this + 1); }
  double bytes_on(const model::Machine& m) const { return m.header_bytes + payload_bytes / m.wire_efficiency; }
};
struct Free {
  void operator()(Packet* packet) const { free(packet); }
};
using PacketPtr = std::unique_ptr<Packet, Free>;

class Service;

// What all services share.
struct World {
  model::Events events;
  model::Machine machine;
  std::vector<std::unique_ptr<Service>> services;
  std::vector<uint8_t> anything;  // what stands for the bytes of blocks
  uint64_t messages = 0, bytes = 0, ended = 0;
  base::Status problem;
};

std::vector<uint8_t> address_of(uint32_t number) {
  std::vector<uint8_t> address(kAddressBytes);
  memcpy(address.data(), &number, sizeof(number));
  return address;
}

// The planner's worker (model/service.cpp) with a fabric that keeps nothing for a pair of services.
class Service : public fabric::Fabric, engine::Observer, engine::Neighbours {
 public:
  Service(World& world, uint32_t number)
      : world_(world),
        number_(number),
        account_(core_, world.machine.service.speed),
        memory_(std::make_shared<model::VirtualPort>(account_, 1 / world.machine.cma_bytes_per_ns)),
        doer_(account_, 1 / world.machine.reduce_bytes_per_ns,
              std::make_shared<model::VirtualPort>(account_, 1 / world.machine.copy_bytes_per_ns,
                                                   std::span(world.anything))),
        coder_(account_, world.machine.compression),
        engine_(config(), *this, *this, *this) {
    engine_.add_client(number, memory_);
  }

  engine::Engine& engine() { return engine_; }
  uint64_t messages() const { return messages_; }
  void begin(model::Action post) {
    posts_.push_back(std::move(post));
    ring();
  }
  // What it has put off as others may follow, which the worker says when it has slept for a while.
  void say_rest() {
    if (!engine_.senders_wait()) return;
    engine_.tell_senders();
    ring();
  }

  // Fabric
  void set_receiver(fabric::Receiver* receiver) override { receiver_ = receiver; }
  std::vector<uint8_t> address() const override { return address_of(number_); }
  std::optional<fabric::Peer> find(fabric::Bytes address) const override {
    uint32_t number = 0;
    memcpy(&number, address.data(), sizeof(number));
    return number;
  }
  base::Result<fabric::Peer> connect(fabric::Bytes address) override { return *find(address); }
  void give_up(fabric::Peer) override {}
  uint64_t backlog(fabric::Peer) const override { return 0; }
  void fetch(fabric::Announced, void*, size_t, uint64_t) override {}  // nothing is announced
  void drop(fabric::Announced) override {}
  int event_fd() const override { return -1; }
  bool arm() override { return true; }
  void flush(int) override {}
  void send(fabric::Peer peer, fabric::Bytes header, fabric::Bytes payload, uint64_t context, fabric::Of) override;
  bool progress() override;

 private:
  engine::Config config() {
    engine::Config config;
    config.now_ns = [this] { return static_cast<uint64_t>(world_.events.now_ns()); };
    config.chunk_bytes = static_cast<size_t>(world_.machine.service.chunk_bytes);
    config.pool_chunks = 32;
    config.worker = 0;
    config.doer = &doer_;
    config.coder = &coder_;
    return config;
  }

  void ring() {
    if (std::exchange(awake_, true)) return;
    world_.events.after(world_.machine.service.wake_ns, [this] { work(); });
  }
  void work() {
    begun_ns_ = account_.spent_ns();
    for (const model::Action& post : std::exchange(posts_, {})) post();
    const bool busy = engine_.progress();
    account_.then([this, busy] {
      if (busy || !posts_.empty() || !arrived_.empty() || !sent_.empty()) return work();
      awake_ = false;
    });
  }
  void leave();
  void arrive(Packet* packet);
  void take(Packet* packet) {
    arrived_.emplace_back(packet);
    ring();
  }

  // Observer, Neighbours
  void on_step(engine::ClientId, uint64_t, uint32_t, uint64_t, bool) override {}
  void on_served(engine::ClientId, uint64_t, uint32_t, uint64_t, bool) override {}
  void on_member_lost(engine::ClientId, uint64_t, uint32_t, engine::Loss) override {}
  void on_finished(engine::ClientId, uint64_t, base::Status status) override {
    if (!status.ok()) world_.problem = status;
    account_.then([this] { ++world_.ended; });
  }
  void send(uint32_t, const wire::Message&, fabric::Bytes) override {}
  void offer(uint32_t, uint64_t, std::shared_ptr<memory::Port>, uint64_t, uint64_t) override {}

  World& world_;
  const uint32_t number_;
  model::Core core_{world_.events};
  model::Account account_;
  const std::shared_ptr<memory::Port> memory_;
  model::VirtualDoer doer_;
  model::VirtualCoder coder_;
  fabric::Receiver* receiver_ = nullptr;
  struct Leaving {
    PacketPtr packet;
    double from_ns;  // the processor is done with it then
  };
  std::deque<Leaving> leaving_;    // on the link up, in order
  std::deque<PacketPtr> arrived_;  // not taken yet
  std::vector<uint64_t> sent_;     // contexts
  double up_free_ns_ = 0, down_free_ns_ = 0, begun_ns_ = 0;
  uint64_t messages_ = 0;
  std::vector<model::Action> posts_;
  bool awake_ = false;
  engine::Engine engine_;
};

void Service::send(fabric::Peer peer, fabric::Bytes header, fabric::Bytes payload, uint64_t context, fabric::Of) {
  const model::Service& s = world_.machine.service;
  const auto message = wire::decode(header);
  const bool is_block =
      message.ok() && (message.value().kind == wire::Kind::data || message.value().kind == wire::Kind::coded);
  account_.charge(s.message_ns +
                  static_cast<double>(payload.size()) * world_.machine.beyond_memory(s.send_ns_per_byte));
  const size_t kept = is_block ? 0 : payload.size();
  PacketPtr packet(static_cast<Packet*>(malloc(sizeof(Packet) + header.size() + kept)));
  if (packet == nullptr) abort();
  *packet = {peer, static_cast<uint32_t>(header.size()), static_cast<uint32_t>(payload.size()), is_block, context};
  memcpy(packet->data(), header.data(), header.size());
  if (kept > 0) memcpy(packet->data() + header.size(), payload.data(), kept);
  ++messages_;
  ++world_.messages;
  world_.bytes += header.size() + payload.size();
  leaving_.push_back({std::move(packet), world_.events.now_ns() + account_.spent_ns() - begun_ns_});
  if (leaving_.size() == 1) leave();
}

// The first of those that leave is on the link.
void Service::leave() {
  const Leaving& first = leaving_.front();
  up_free_ns_ = std::max({up_free_ns_, first.from_ns, world_.events.now_ns()}) +
                first.packet->bytes_on(world_.machine) / world_.machine.rate_bytes_per_ns;
  world_.events.at(up_free_ns_, [this] {
    Packet* const packet = leaving_.front().packet.release();
    leaving_.pop_front();
    if (packet->payload_bytes > 0) {
      sent_.push_back(packet->context);
      ring();
    }
    Service* const to = world_.services[packet->to].get();
    world_.events.after(world_.machine.latency_ns, [to, packet] { to->arrive(packet); });
    if (!leaving_.empty()) leave();
  });
}

// Its first byte is at the switch; its last one comes when those before it have.
void Service::arrive(Packet* packet) {
  const double now_ns = world_.events.now_ns();
  down_free_ns_ = std::max(now_ns, down_free_ns_ + packet->bytes_on(world_.machine) / world_.machine.rate_bytes_per_ns);
  if (down_free_ns_ <= now_ns) return take(packet);
  world_.events.at(down_free_ns_, [this, packet] { take(packet); });
}

bool Service::progress() {
  const model::Service& s = world_.machine.service;
  bool busy = !sent_.empty();
  for (const uint64_t context : std::exchange(sent_, {})) receiver_->on_sent(context, true);
  for (size_t left = arrived_.size(); left > 0; --left) {
    const PacketPtr packet = std::move(arrived_.front());
    arrived_.pop_front();
    account_.charge(s.message_ns + packet->payload_bytes * world_.machine.beyond_memory(s.receive_ns_per_byte));
    const uint8_t* const payload = packet->is_block ? world_.anything.data() : packet->data() + packet->header_bytes;
    receiver_->on_message({packet->data(), packet->header_bytes}, {payload, packet->payload_bytes});
    busy = true;
  }
  return busy;
}

}  // namespace

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
