// SPDX-License-Identifier: BSD-3-Clause
#include "cluster.hpp"

#include "wire/batch.hpp"

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

namespace offpath::testing {

bool FarMemory::inside_hole(uint64_t address, size_t bytes) const {
  return std::any_of(holes_.begin(), holes_.end(), [&](const auto& hole) {
    return address < hole.first + hole.second && hole.first < address + bytes;
  });
}

memory::Outcome FarMemory::read(void* to, uint64_t address, size_t bytes, memory::Ticket) const {
  if (inside_hole(address, bytes)) return base::Status::error(OFFPATH_ERR_MEMORY_FAULT, "a hole");
  return direct_->read(to, address, bytes);
}

memory::Outcome FarMemory::write(uint64_t address, const void* from, size_t bytes, memory::Ticket) const {
  if (inside_hole(address, bytes)) return base::Status::error(OFFPATH_ERR_MEMORY_FAULT, "a hole");
  return direct_->write(address, from, bytes);
}

void CountingFabric::send(fabric::Peer peer, fabric::Bytes header, fabric::Bytes payload, uint64_t context,
                          fabric::Of of) {
  sent.push_back(wire::decode(header).value().kind);
  if (sent.back() == wire::Kind::data) data_of.insert(of);
  fabric::Bytes entries = sent.back() == wire::Kind::batch ? payload : fabric::Bytes();
  while (const auto entry = wire::take_entry(entries)) batched.push_back(wire::decode(entry->header).value().kind);
  fabric_->send(peer, header, payload, context, of);
}

base::Result<std::shared_ptr<fabric::Group>> CountingFabric::join(const fabric::GroupSpec& spec) {
  if (groups == nullptr) return Fabric::join(spec);
  const size_t chunk_bytes = spec.chunk_bytes == 0 ? 40 : spec.chunk_bytes;
  std::shared_ptr<fabric::Group> group = groups->join(spec.team[0], spec.own, chunk_bytes);
  groups_joined.push_back(wrap_group ? wrap_group(std::move(group)) : std::move(group));
  return groups_joined.back();
}

struct Cluster::Worker : engine::Neighbours {
  Worker(Cluster& owner, uint32_t its_node, const engine::Config& config)
      : cluster(owner),
        node(its_node),
        fabric(std::make_unique<CountingFabric>(owner.network_->make_endpoint())),
        engine(std::make_unique<engine::Engine>(config, *fabric, *this, owner)) {
    fabric->loses = getenv("OFFPATH_TEST_LOSES") != nullptr;
  }
  void send(uint32_t worker, const wire::Message& message, fabric::Bytes payload) override {
    Worker& to = neighbour(worker);
    to.mailbox.emplace_back([&to, message, body = std::vector<uint8_t>(payload.begin(), payload.end())] {
      to.engine->on_neighbour_message(message, body);
    });
  }
  void offer(uint32_t worker, uint64_t pull_id, std::shared_ptr<memory::Port> memory, uint64_t address,
             uint64_t bytes) override {
    EXPECT_EQ(memory == nullptr, bytes == 0);
    Worker& to = neighbour(worker);
    to.mailbox.emplace_back([=, &to] { to.engine->on_neighbour_offer(pull_id, memory, address, bytes); });
  }
  Worker& neighbour(uint32_t worker) const { return *cluster.engines_[worker * cluster.count_ + node]; }
  // As a worker: what came, then progress.
  bool step() {
    const bool any = !mailbox.empty();
    if (any && cluster.random_() % 2 != 0) {
      const auto mail = std::move(mailbox.front());
      mailbox.pop_front();
      mail();
    }
    return engine->progress() || any;
  }
  Cluster& cluster;
  const uint32_t node;
  std::unique_ptr<CountingFabric> fabric;
  std::unique_ptr<engine::Engine> engine;
  std::deque<std::function<void()>> mailbox;
};

Cluster::Cluster(uint32_t nodes, uint32_t ranks, uint64_t seed, engine::Config config,
                 std::shared_ptr<memory::Port> memory, uint32_t workers)
    : network_(make_network(seed)),
      random_(seed),
      count_(nodes),
      workers_(workers),
      ranks_(ranks),
      memory_(std::move(memory)) {
  if (const char* codec = getenv("OFFPATH_TEST_CODEC"); codec != nullptr && config.compress.is_off()) {
    config.compress = codecs::parse_wish(codec).value();
  }
  const bool is_late = dynamic_cast<LatePort*>(memory_.get()) != nullptr;  // and driven by the test
  if (ports_are_late() && !is_late) memory_ = late_ = make_driven_port(memory_, seed);
  // Half of all clusters hand what members of a worker say to each other through a mailbox, too.
  const bool all_by_mail = workers_ == 1 && seed % 2 != 0;
  for (uint32_t i = 0; i < nodes * workers_; ++i) {
    if (!all_by_mail) config.worker = i / nodes;
    engines_.push_back(std::make_unique<Worker>(*this, i % nodes, config));
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) engine_of(rank).add_client(rank + 1, memory_);
}

Cluster::~Cluster() = default;

engine::Config Cluster::small_chunks() {
  engine::Config config;
  config.chunk_bytes = 64;  // many chunks from little data
  config.chunks_in_flight = 2;
  config.pool_chunks = 6;
  return config;
}

fabric::LoopbackGroups& Cluster::offer_groups(uint64_t seed, const fabric::GroupFaults& faults) {
  groups_ = std::make_unique<fabric::LoopbackGroups>(seed, faults);
  for (const auto& worker : engines_) worker->fabric->groups = groups_.get();
  return *groups_;
}

std::vector<engine::TeamHandle> Cluster::make_team(const std::vector<uint32_t>& members, uint8_t id,
                                                   const char* compress) {
  std::vector<engine::TeamHandle> handles;
  for (uint32_t i = 0; i < members.size(); ++i) handles.push_back(join_team(members, id, i, compress));
  return handles;
}

engine::TeamHandle Cluster::join_team(const std::vector<uint32_t>& members, uint8_t id, uint32_t member,
                                      const char* compress) {
  engine::TeamSpec spec;
  spec.id.bytes[0] = id;
  spec.rank = member;
  spec.client = members[member] + 1;
  spec.context = 1000 + id;
  if (compress != nullptr) spec.compress = codecs::parse_wish(compress).value();
  std::vector<engine::WorkerAddress> served;
  for (const uint32_t rank : members) {
    served.push_back(
        {node_index(rank) == node_index(members[member]), engine_index(rank) / count_, fabric_of(rank).address()});
  }
  spec.members = engine::Roster(served);
  auto handle = engine_of(members[member]).add_team(std::move(spec));
  EXPECT_TRUE(handle.ok()) << handle.status().text();
  return handle.value();
}

CountingFabric& Cluster::fabric_of(uint32_t rank) { return *engines_[engine_index(rank)]->fabric; }
engine::Engine& Cluster::engine_at(uint32_t index) { return *engines_[index]->engine; }

void Cluster::cut_node(uint32_t node) {
  for (uint32_t i = node; i < engines(); i += count_) cut_engine(i);
}

void Cluster::cut_engine(uint32_t index) {
  network_->cut(index);
  cut_.insert(index);
}

void Cluster::part(uint32_t rank, uint32_t other) {
  for (const auto& [from, to] : {std::pair(rank, other), std::pair(other, rank)}) {
    if (const auto peer = fabric_of(from).find(fabric_of(to).address())) fabric_of(from).give_up(*peer);
  }
}

void Cluster::silence_node(uint32_t node) {
  network_->silence();
  for (uint32_t i = node; i < engines(); i += count_) cut_.insert(i);
}

void Cluster::stop_node(uint32_t node) {
  for (uint32_t i = node; i < engines(); i += count_) stopped_.insert(i);
}

bool Cluster::step() {
  const uint32_t index = static_cast<uint32_t>(random_() % engines_.size());
  const bool late = late_ != nullptr && late_->step();
  return (cut_.contains(index) || stopped_.contains(index) ? false : engines_[index]->step()) || late;
}

bool Cluster::step(uint32_t index) { return engines_[index]->step(); }

void Cluster::settle() {
  int idle = 0;
  const int enough = 20 * static_cast<int>(engines_.size()) + 40;
  for (int naps = 0; idle < enough; idle = step() ? 0 : idle + 1) {
    if (idle + 1 < enough || network_->patience() < 0) continue;
    if (network_->in_flight() == 0 && naps++ >= network_->patience()) continue;
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    idle = 0;
  }
}

std::optional<offpath_status_t> Cluster::outcome(uint32_t rank, uint64_t operation) const {
  const auto it = outcomes_.find({rank + 1, operation});
  return it == outcomes_.end() ? std::nullopt : std::optional(it->second);
}

void Cluster::on_first_byte(engine::ClientId client, uint64_t operation) {
  Told& told = told_[{client, operation}];
  EXPECT_EQ(++told.first_bytes, 1U) << "told twice of the first byte";
  EXPECT_EQ(told.step_bytes, 0U) << "told late of the first byte";
}

void Cluster::on_step(engine::ClientId client, uint64_t operation, uint32_t, uint64_t bytes, bool) {
  Told& told = told_[{client, operation}];
  EXPECT_TRUE(bytes == 0 || told.first_bytes == 1) << "bytes without a first one";
  ++told.steps, told.step_bytes += bytes;
  EXPECT_FALSE(outcomes_.contains({client, operation})) << "a step after the end";
}

void Cluster::on_served(engine::ClientId client, uint64_t operation, uint32_t, uint64_t bytes, bool) {
  Told& told = told_[{client, operation}];
  ++told.served, told.served_bytes += bytes;
  EXPECT_FALSE(outcomes_.contains({client, operation})) << "served after the end";
}

void Cluster::on_sampled(engine::ClientId client, const codecs::Chooser::Sampled& sampled) {
  Told& told = told_[{client, 0}];
  told.sampled.bytes += sampled.bytes, told.sampled.left += sampled.left;
}

void Cluster::on_coded(engine::ClientId client, const engine::Coded& coded) {
  Told& told = told_[{client, 0}];
  told.largest_error = std::max(told.largest_error, coded.largest_error);
  told.saved_ns += coded.saved_ns;
}

void Cluster::on_finished(engine::ClientId client, uint64_t operation, base::Status status) {
  const bool first = outcomes_.emplace(std::pair(client, operation), status.code()).second;
  EXPECT_TRUE(first) << "operation finished twice";
}

void Cluster::on_member_lost(engine::ClientId client, uint64_t team, uint32_t rank, engine::Loss how) {
  lost_[client].insert({team, rank});
  how_lost_[client][{team, rank}] = how;
}

uint32_t Cluster::workers_wanted() {
  const char* count = getenv("OFFPATH_TEST_WORKERS");
  return count == nullptr ? 1 : static_cast<uint32_t>(atoi(count));
}

fabric::GroupFaults drawn_faults(std::mt19937_64& random, const std::array<double, 6>& parts, size_t for_all,
                                 size_t room) {
  fabric::GroupFaults faults;
  faults.lost = parts[random() % parts.size()];
  faults.lost_for_all = parts[random() % for_all];
  faults.doubled = parts[random() % 5];
  faults.overtaken = parts[random() % 5];
  faults.stale = parts[random() % 5];
  faults.room = random() % 3 == 0 ? room : 0;
  return faults;
}

std::vector<uint32_t> everybody(uint32_t ranks) {
  std::vector<uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace offpath::testing
