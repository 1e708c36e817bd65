// SPDX-License-Identifier: BSD-3-Clause
// A whole cluster in one process: nodes with one engine each on a network, ranks spread over the nodes. With
// OFFPATH_TEST_WORKERS=N the services have N workers, so engines, each; the last one gets more of the node's ranks. With
// OFFPATH_TEST_CODEC what can be compressed is.
#pragma once

#include "engine/engine.hpp"
#include "agent_port.hpp"
#include "fabric/loopback/groups.hpp"
#include "network.hpp"
#include "wire/batch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <thread>

namespace offpath::testing {

// Memory that must be copied out and in, as a real client's, and that has holes.
class FarMemory : public memory::Port {
 public:
  memory::Outcome read(void* to, uint64_t address, size_t bytes, memory::Ticket) const override {
    if (inside_hole(address, bytes)) return base::Status::error(OFFPATH_ERR_MEMORY_FAULT, "a hole");
    return direct_->read(to, address, bytes);
  }
  memory::Outcome write(uint64_t address, const void* from, size_t bytes, memory::Ticket) const override {
    if (inside_hole(address, bytes)) return base::Status::error(OFFPATH_ERR_MEMORY_FAULT, "a hole");
    return direct_->write(address, from, bytes);
  }
  void tear(const void* begin, size_t bytes) { holes_.emplace_back(reinterpret_cast<uint64_t>(begin), bytes); }

 private:
  bool inside_hole(uint64_t address, size_t bytes) const {
    return std::any_of(holes_.begin(), holes_.end(), [&](const auto& hole) {
      return address < hole.first + hole.second && hole.first < address + bytes;
    });
  }
  std::unique_ptr<memory::Port> direct_ = memory::make_direct();
  std::vector<std::pair<uint64_t, size_t>> holes_;
};

// A fabric that counts what is sent through it.
class CountingFabric : public fabric::Fabric {
 public:
  explicit CountingFabric(std::unique_ptr<fabric::Fabric> fabric) : fabric_(std::move(fabric)) {}
  void set_receiver(fabric::Receiver* receiver) override { fabric_->set_receiver(receiver); }
  std::vector<uint8_t> address() const override { return fabric_->address(); }
  base::Result<fabric::Peer> connect(fabric::Bytes address) override { return fabric_->connect(address); }
  std::optional<fabric::Peer> find(fabric::Bytes address) const override { return fabric_->find(address); }
  void give_up(fabric::Peer peer) override { fabric_->give_up(peer); }
  void send(fabric::Peer peer, fabric::Bytes header, fabric::Bytes payload, uint64_t context, fabric::Of of) override {
    sent.push_back(wire::decode(header).value().kind);
    if (sent.back() == wire::Kind::data) data_of.insert(of);
    fabric::Bytes entries = sent.back() == wire::Kind::batch ? payload : fabric::Bytes();
    while (const auto entry = wire::take_entry(entries)) batched.push_back(wire::decode(entry->header).value().kind);
    fabric_->send(peer, header, payload, context, of);
  }
  base::Result<std::shared_ptr<fabric::Group>> join(const fabric::GroupSpec& spec) override {
    if (groups == nullptr) return Fabric::join(spec);
    const size_t chunk_bytes = spec.chunk_bytes == 0 ? 40 : spec.chunk_bytes;
    std::shared_ptr<fabric::Group> group = groups->join(spec.team[0], spec.own, chunk_bytes);
    groups_joined.push_back(wrap_group ? wrap_group(std::move(group)) : std::move(group));
    return groups_joined.back();
  }
  uint64_t backlog(fabric::Peer peer) const override { return fabric_->backlog(peer); }
  void fetch(fabric::Announced handle, void* buffer, size_t bytes, uint64_t context) override {
    fabric_->fetch(handle, buffer, bytes, context);
  }
  void drop(fabric::Announced handle) override { fabric_->drop(handle); }
  bool progress() override { return fabric_->progress(); }
  int event_fd() const override { return -1; }
  bool arm() override { return fabric_->arm(); }
  void flush(int timeout_ms) override { fabric_->flush(timeout_ms); }
  std::vector<wire::Kind> sent;
  std::vector<wire::Kind> batched;  // in batches
  std::set<fabric::Of> data_of;     // what was said of blocks'
  std::vector<std::shared_ptr<fabric::Group>> groups_joined;
  fabric::LoopbackGroups* groups = nullptr;  // null: no multicast
  std::function<std::shared_ptr<fabric::Group>(std::shared_ptr<fabric::Group>)> wrap_group;

 private:
  std::unique_ptr<fabric::Fabric> fabric_;
};

class Cluster : public engine::Observer {
 public:
  // What the observer was told of an operation.
  struct Told {
    uint32_t first_bytes = 0, steps = 0, served = 0;
    uint64_t step_bytes = 0, served_bytes = 0;
    double largest_error = 0;  // of all operations: it stands with number 0
    double saved_ns = 0;       // the same
    codecs::Chooser::Sampled sampled = {};
  };

  Cluster(uint32_t nodes, uint32_t ranks, uint64_t seed, engine::Config config = small_chunks(),
          std::shared_ptr<memory::Port> memory = memory::make_direct(), uint32_t workers = workers_wanted())
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
    for (uint32_t rank = 0; rank < ranks; ++rank) worker_of(rank).engine->add_client(rank + 1, memory_);
  }

  static engine::Config small_chunks() {
    engine::Config config;
    config.chunk_bytes = 64;  // many chunks from little data
    config.chunks_in_flight = 2;
    config.pool_chunks = 6;
    return config;
  }

  // From now on there is multicast, with these faults.
  fabric::LoopbackGroups& offer_groups(uint64_t seed, const fabric::GroupFaults& faults) {
    groups_ = std::make_unique<fabric::LoopbackGroups>(seed, faults);
    for (const auto& worker : engines_) worker->fabric->groups = groups_.get();
    return *groups_;
  }

  // Every rank's end of a team; `members[i]` is the cluster rank of member i. Returns the handles by member.
  std::vector<engine::TeamHandle> make_team(const std::vector<uint32_t>& members, uint8_t id,
                                            const char* compress = nullptr) {
    std::vector<engine::TeamHandle> handles;
    for (uint32_t i = 0; i < members.size(); ++i) handles.push_back(join_team(members, id, i, compress));
    return handles;
  }

  engine::TeamHandle join_team(const std::vector<uint32_t>& members, uint8_t id, uint32_t member,
                               const char* compress = nullptr) {
    engine::TeamSpec spec;
    spec.id.bytes[0] = id;
    spec.rank = member;
    spec.client = members[member] + 1;
    spec.context = 1000 + id;
    if (compress != nullptr) spec.compress = codecs::parse_wish(compress).value();
    std::vector<engine::WorkerAddress> served;
    for (const uint32_t rank : members) {
      served.push_back({node_index(rank) == node_index(members[member]), engine_index(rank) / count_,
                        worker_of(rank).fabric->address()});
    }
    spec.members = engine::Roster(served);
    auto handle = worker_of(members[member]).engine->add_team(std::move(spec));
    EXPECT_TRUE(handle.ok()) << handle.status().text();
    return handle.value();
  }

  engine::Engine& engine_of(uint32_t rank) { return *worker_of(rank).engine; }
  CountingFabric& fabric_of(uint32_t rank) { return *worker_of(rank).fabric; }
  engine::Engine& engine_at(uint32_t index) { return *engines_[index]->engine; }
  uint32_t engines() const { return static_cast<uint32_t>(engines_.size()); }
  uint32_t node_index(uint32_t rank) const { return rank % count_; }
  uint32_t engine_index(uint32_t rank) const {
    const uint32_t worker = std::min(rank / count_ % (workers_ + 1), workers_ - 1);
    return worker * count_ + rank % count_;
  }
  void cut_node(uint32_t node) {
    for (uint32_t i = node; i < engines(); i += count_) cut_engine(i);
  }
  // One worker: it does nothing any more, and its peers are told.
  void cut_engine(uint32_t index) {
    network_->cut(index);
    cut_.insert(index);
  }
  // The workers of two ranks lose each other, as when their connection breaks.
  void part(uint32_t rank, uint32_t other) {
    for (const auto& [from, to] : {std::pair(rank, other), std::pair(other, rank)}) {
      if (const auto peer = fabric_of(from).find(fabric_of(to).address())) fabric_of(from).give_up(*peer);
    }
  }
  bool is_cut(uint32_t index) const { return cut_.contains(index); }
  // It does nothing any more, and nobody is told.
  void silence_node(uint32_t node) {
    network_->silence();
    for (uint32_t i = node; i < engines(); i += count_) cut_.insert(i);
  }
  // It does nothing until all that were stopped go on.
  void stop_node(uint32_t node) {
    for (uint32_t i = node; i < engines(); i += count_) stopped_.insert(i);
  }
  void go_on() { stopped_.clear(); }
  void kill_client(uint32_t rank) { engine_of(rank).remove_client(rank + 1); }

  // One step of a random engine; returns whether anything happened.
  bool step() {
    const uint32_t index = static_cast<uint32_t>(random_() % engines_.size());
    const bool late = late_ != nullptr && late_->step();
    return (cut_.contains(index) || stopped_.contains(index) ? false : engines_[index]->step()) || late;
  }

  // One round of a worker.
  bool step(uint32_t index) { return engines_[index]->step(); }

  // Runs until nothing moves any more.
  void settle() {
    int idle = 0;
    const int enough = 20 * static_cast<int>(engines_.size()) + 40;
    for (int naps = 0; idle < enough; idle = step() ? 0 : idle + 1) {
      if (idle + 1 < enough || network_->patience() < 0) continue;
      if (network_->in_flight() == 0 && naps++ >= network_->patience()) continue;
      std::this_thread::sleep_for(std::chrono::microseconds(500));
      idle = 0;
    }
  }

  std::optional<offpath_status_t> outcome(uint32_t rank, uint64_t operation) const {
    const auto it = outcomes_.find({rank + 1, operation});
    return it == outcomes_.end() ? std::nullopt : std::optional(it->second);
  }
  const std::set<std::pair<uint64_t, uint32_t>>& lost_members(uint32_t rank) { return lost_[rank + 1]; }
  engine::Loss how_lost(uint32_t rank, uint64_t team, uint32_t member) { return how_lost_[rank + 1][{team, member}]; }
  std::mt19937_64& random() { return random_; }
  uint32_t ranks() const { return ranks_; }
  size_t in_flight() const { return network_->in_flight(); }
  // Something is under way that arrives when the system likes to.
  bool system_carries() const { return network_->patience() >= 0 && network_->in_flight() > 0; }
  const Told& told(uint32_t rank, uint64_t operation) { return told_[{rank + 1, operation}]; }

  void on_first_byte(engine::ClientId client, uint64_t operation) override {
    Told& told = told_[{client, operation}];
    EXPECT_EQ(++told.first_bytes, 1U) << "told twice of the first byte";
    EXPECT_EQ(told.step_bytes, 0U) << "told late of the first byte";
  }
  void on_step(engine::ClientId client, uint64_t operation, uint32_t, uint64_t bytes, bool) override {
    Told& told = told_[{client, operation}];
    EXPECT_TRUE(bytes == 0 || told.first_bytes == 1) << "bytes without a first one";
    ++told.steps, told.step_bytes += bytes;
    EXPECT_FALSE(outcomes_.contains({client, operation})) << "a step after the end";
  }
  void on_served(engine::ClientId client, uint64_t operation, uint32_t, uint64_t bytes, bool) override {
    Told& told = told_[{client, operation}];
    ++told.served, told.served_bytes += bytes;
    EXPECT_FALSE(outcomes_.contains({client, operation})) << "served after the end";
  }
  void on_sampled(engine::ClientId client, const codecs::Chooser::Sampled& sampled) override {
    Told& told = told_[{client, 0}];
    told.sampled.bytes += sampled.bytes, told.sampled.left += sampled.left;
  }
  void on_coded(engine::ClientId client, const engine::Coded& coded) override {
    Told& told = told_[{client, 0}];
    told.largest_error = std::max(told.largest_error, coded.largest_error);
    told.saved_ns += coded.saved_ns;
  }
  void on_finished(engine::ClientId client, uint64_t operation, base::Status status) override {
    const bool first = outcomes_.emplace(std::pair(client, operation), status.code()).second;
    EXPECT_TRUE(first) << "operation finished twice";
  }
  void on_member_lost(engine::ClientId client, uint64_t team, uint32_t rank, engine::Loss how) override {
    lost_[client].insert({team, rank});
    how_lost_[client][{team, rank}] = how;
  }

 private:
  struct Worker : engine::Neighbours {
    Worker(Cluster& owner, uint32_t its_node, const engine::Config& config)
        : cluster(owner),
          node(its_node),
          fabric(std::make_unique<CountingFabric>(owner.network_->make_endpoint())),
          engine(std::make_unique<engine::Engine>(config, *fabric, *this, owner)) {}
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

  Worker& worker_of(uint32_t rank) { return *engines_[engine_index(rank)]; }
  static uint32_t workers_wanted() {
    const char* count = getenv("OFFPATH_TEST_WORKERS");
    return count == nullptr ? 1 : static_cast<uint32_t>(atoi(count));
  }

  std::unique_ptr<Network> network_;
  std::unique_ptr<fabric::LoopbackGroups> groups_;
  std::mt19937_64 random_;
  const uint32_t count_;    // of nodes
  const uint32_t workers_;  // of each
  uint32_t ranks_;
  std::shared_ptr<memory::Port> memory_;
  std::shared_ptr<DrivenPort> late_;
  std::vector<std::unique_ptr<Worker>> engines_;
  std::map<std::pair<engine::ClientId, uint64_t>, offpath_status_t> outcomes_;
  std::map<std::pair<engine::ClientId, uint64_t>, Told> told_;
  std::map<engine::ClientId, std::set<std::pair<uint64_t, uint32_t>>> lost_;
  std::map<engine::ClientId, std::map<std::pair<uint64_t, uint32_t>, engine::Loss>> how_lost_;
  std::set<uint32_t> cut_, stopped_;
};

// What a network does to what is multicast. `parts`: of the chunks; what all lose together has one of the first `for_all`.
inline fabric::GroupFaults drawn_faults(std::mt19937_64& random, const std::array<double, 6>& parts, size_t for_all,
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

inline uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }
inline graph::Place at(const std::vector<uint8_t>& buffer, size_t offset = 0) {
  return graph::client_place(address_of(buffer.data() + offset));
}

inline std::vector<uint32_t> everybody(uint32_t ranks) {
  std::vector<uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace offpath::testing
