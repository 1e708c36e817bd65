// SPDX-License-Identifier: BSD-3-Clause
#include "model/service.hpp"

#include "engine/engine.hpp"
#include "model/teams.hpp"
#include "model/virtual_coder.hpp"
#include "model/virtual_memory.hpp"
#include "ops/onesided/target.hpp"

#include <algorithm>
#include <cstring>

namespace offpath::model {
namespace {

using base::Status;

// Windows are as long as anything that is done in them, and begin where operations do.
constexpr uint64_t kWindow = 1, kWindowBase = uint64_t{1} << 44, kWindowBytes = uint64_t{1} << 45;
constexpr uint64_t kOriginBase = uint64_t{1} << 43;

engine::Config config_of(const Events& events, const Machine& machine, engine::Doer& doer, engine::Coder& coder) {
  engine::Config config;
  config.now_ns = [&events] { return static_cast<uint64_t>(events.now_ns()); };
  config.chunk_bytes = static_cast<size_t>(machine.service.chunk_bytes);
  config.worker = 0;
  config.doer = &doer;
  config.coder = &coder;
  if (machine.compression.left < 1) config.compress.method = {codecs::CodecId::lz4};  // any: the coder does not look
  return config;
}

uint64_t context_of(uint32_t number, uint32_t member) { return uint64_t{number} << 32 | member; }

// All clients of a node are one worker's.
class NoNeighbours : public engine::Neighbours {
  void send(uint32_t, const wire::Message&, fabric::Bytes) override {}
  void offer(uint32_t, uint64_t, std::shared_ptr<memory::Port>, uint64_t, uint64_t) override {}
};

// Sleeps, wakes up, and does a round of its engine after the other, each when what the one before has cost is spent.
class Worker : public engine::Observer, public graph::Responder {
 public:
  // `anything`: a chunk of bytes that mean nothing.
  Worker(Events& events, Core& core, VirtualWire& wire, uint32_t node, std::span<uint8_t> anything,
         const Services::OnDone& on_done)
      : events_(events),
        machine_(wire.machine),
        on_done_(on_done),
        account_(core, machine_.service.speed),
        clients_(std::make_shared<VirtualPort>(account_, 1 / machine_.cma_bytes_per_ns)),
        doer_(account_, 1 / machine_.reduce_bytes_per_ns,
              std::make_shared<VirtualPort>(account_, 1 / machine_.copy_bytes_per_ns, anything)),
        coder_(account_, machine_.compression),
        fabric_(wire, node, account_, [this] { ring(); }),
        engine_(config_of(events, machine_, doer_, coder_), fabric_, neighbours_, *this) {
    engine_.set_responder(this);
  }

  engine::Engine& engine() { return engine_; }
  ops::onesided::Target& target() { return target_; }
  void add_client(uint32_t rank) { engine_.add_client(rank, clients_); }
  double spent_ns() const { return account_.spent_ns(); }
  const Status& problem() const { return problem_; }

  // `post` hands a graph of `size` steps and exports to the engine.
  void begin(size_t size, Action post) {
    posts_.push_back([this, size, act = std::move(post)] {
      account_.charge(machine_.service.operation_ns + machine_.service.step_ns * static_cast<double>(size));
      act();
    });
    ring();
  }

 private:
  void ring() {
    if (std::exchange(awake_, true)) return;
    events_.after(machine_.service.wake_ns, [this] { work(); });
  }

  void work() {
    for (const Action& post : std::exchange(posts_, {})) post();
    const bool busy = engine_.progress();
    account_.then([this, busy] {
      if (busy || !posts_.empty() || fabric_.has_work()) return work();
      awake_ = false;
    });
  }

  void on_step(engine::ClientId, uint64_t, uint32_t, uint64_t, bool) override {}
  void on_served(engine::ClientId, uint64_t, uint32_t, uint64_t, bool) override {}
  void on_member_lost(engine::ClientId, uint64_t, uint32_t, engine::Loss) override {}
  void on_finished(engine::ClientId, uint64_t operation, Status status) override {
    if (!status.ok()) problem_ = status;
    account_.then(
        [this, operation] { on_done_(static_cast<uint32_t>(operation >> 32), static_cast<uint32_t>(operation)); });
  }

  graph::Answer on_request(graph::ClientId client, uint64_t team, uint32_t from, graph::RequestId request,
                           const std::shared_ptr<memory::Port>& memory, std::span<const uint8_t> body) override {
    account_.charge(machine_.service.operation_ns + machine_.service.step_ns);
    return target_.on_request(client, team, from, request, memory, body);
  }
  void on_answered(graph::ClientId client, uint64_t team, graph::RequestId request, const Status& status) override {
    target_.on_answered(client, team, request, status);
  }

  Events& events_;
  const Machine& machine_;
  const Services::OnDone& on_done_;
  Account account_;
  const std::shared_ptr<memory::Port> clients_;
  VirtualDoer doer_;
  VirtualCoder coder_;
  NoNeighbours neighbours_;
  VirtualFabric fabric_;
  engine::Engine engine_;
  ops::onesided::Target target_{
      [this](graph::RequestId request, graph::Answer answer) { engine_.answer(request, std::move(answer)); }};
  std::vector<Action> posts_;
  bool awake_ = false;
  Status problem_;
};

ops::onesided::Remote remote_of(const Operation& operation) {
  ops::onesided::Remote made;
  ops::onesided::Wanted& wanted = made.wanted;
  wanted.window = kWindow;
  const bool message = operation.remote == Remote::message, gets = operation.remote == Remote::get;
  wanted.kind = operation.reduces ? OFFPATH_ACCUMULATE
                : message         ? OFFPATH_PUT_SIGNAL
                : gets            ? OFFPATH_GET
                                  : OFFPATH_PUT;
  wanted.bytes = std::max<uint64_t>(operation.bytes, 1);
  if (operation.reduces) {
    wanted.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_F64};
    wanted.bytes = (wanted.bytes + 7) / 8 * 8;
  }
  const uint64_t data_bytes = wanted.bytes;
  if (message) wanted.bytes += remote::kSignalBytes;
  remote::encode(wanted, {}, made.body);
  made.target = operation.members[1];
  (gets ? made.result : made.send) = {0, 0, kOriginBase, data_bytes};
  if (message) made.result = {0, 0, kOriginBase + data_bytes, remote::kSignalBytes};
  return made;
}

}  // namespace

struct Services::State {
  // A communicator: made when something is posted on it.
  struct Team {
    ops::Topology topology;
    std::vector<engine::TeamHandle> handles;  // by member
  };

  State(Events& all_events, Network& network, const Job& given, const std::vector<std::unique_ptr<Core>>& all_cores,
        OnDone on_done)
      : events(all_events),
        job(given),
        cores(all_cores),
        done(std::move(on_done)),
        wire{network, given.machine, std::vector<VirtualFabric*>(given.nodes)},
        places(places_of(given)),
        anything(static_cast<size_t>(given.machine.service.chunk_bytes)),
        workers(given.nodes) {}

  Worker& worker_of(uint32_t rank) {
    const uint32_t node = job.node_of[rank];
    auto& worker = workers[node];
    if (!worker) worker = std::make_unique<Worker>(events, *cores[job.service_core[node]], wire, node, anything, done);
    return *worker;
  }

  Team& team_of(uint32_t number, const std::vector<uint32_t>& ranks) {
    const auto [found, is_new] = teams.try_emplace(number);
    Team& team = found->second;
    if (!is_new) return team;
    wire::TeamId id;
    memcpy(id.bytes.data(), &number, sizeof(number));
    std::vector<uint64_t> nodes;
    for (const uint32_t rank : ranks) nodes.push_back(job.node_of[rank]);
    team.topology = ops::Topology::make(0, nodes);
    for (uint32_t member = 0; member < ranks.size(); ++member) {
      std::vector<engine::WorkerAddress> members;
      for (const uint64_t node : nodes) {
        const bool local = node == nodes[member];
        members.push_back(
            {local, 0, local ? std::vector<uint8_t>() : VirtualFabric::address_of(static_cast<uint32_t>(node))});
      }
      engine::TeamSpec spec{id, member, engine::Roster(members), ranks[member], number};
      worker_of(ranks[member]).add_client(ranks[member]);
      auto handle = worker_of(ranks[member]).engine().add_team(std::move(spec));
      if (!handle.ok()) problem = handle.status();
      team.handles.push_back(handle.ok() ? handle.value() : 0);
    }
    return team;
  }

  // Of all ranks, with a window: for what is one-sided.
  Team& everybody() {
    if (const auto found = teams.find(kEverybody); found != teams.end()) return found->second;
    std::vector<uint32_t> ranks(job.ranks.size());
    for (uint32_t rank = 0; rank < ranks.size(); ++rank) ranks[rank] = rank;
    for (const uint32_t rank : ranks) {
      const Status status = worker_of(rank).target().open(rank, kEverybody, kWindow, kWindowBase, kWindowBytes, false);
      if (!status.ok()) problem = status;
    }
    return team_of(kEverybody, ranks);
  }

  static constexpr uint32_t kEverybody = UINT32_MAX;

  Events& events;
  const Job& job;
  const std::vector<std::unique_ptr<Core>>& cores;  // by number
  const OnDone done;
  VirtualWire wire;
  const std::vector<Place> places;  // by operation
  std::vector<uint8_t> anything;
  std::vector<std::unique_ptr<Worker>> workers;  // by node; made when something is posted there
  std::map<uint32_t, Team> teams;
  Status problem;
};

Services::Services(Events& events, Network& network, const Job& job, const std::vector<std::unique_ptr<Core>>& cores,
                   OnDone on_done)
    : state_(std::make_unique<State>(events, network, job, cores, std::move(on_done))) {}
Services::~Services() = default;

Status Services::post(uint32_t number, const Operation& operation, uint32_t member) {
  State& s = *state_;
  const uint32_t rank = operation.members[member];
  Worker& worker = s.worker_of(rank);
  const uint64_t context = context_of(number, member);
  if (operation.remote != Remote::none) {
    const engine::TeamHandle team = s.everybody().handles[rank];
    const auto request = std::make_shared<graph::Request>(ops::onesided::make_request(remote_of(operation)));
    worker.begin(
        1, [&worker, team, request, context] { worker.engine().post_request(team, std::move(*request), context); });
    return {};
  }
  const Place place = s.places[number];
  State::Team& team = s.team_of(place.team, operation.members);
  team.topology.rank = member;
  auto graph = service_graph(operation, team.topology, s.job.machine.service.own_cores);
  if (!graph.ok()) return graph.status();
  const auto shared = std::make_shared<graph::Graph>(std::move(graph.value()));  // actions are copied
  worker.begin(shared->steps.size() + shared->exports.size(),
               [&worker, handle = team.handles[member], place, shared, context] {
                 worker.engine().post(handle, place.number, std::move(*shared), context);
               });
  return {};
}

double Services::spent_ns(uint32_t node) const {
  const auto& worker = state_->workers[node];
  return worker ? worker->spent_ns() : 0;
}

const Status& Services::problem() const {
  for (const auto& worker : state_->workers) {
    if (worker && !worker->problem().ok()) return worker->problem();
  }
  return state_->problem;
}

}  // namespace offpath::model
