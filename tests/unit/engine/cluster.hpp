// SPDX-License-Identifier: BSD-3-Clause
// A whole cluster in one process: nodes with one engine each on a loopback network, ranks spread over the nodes.
#pragma once

#include "engine/engine.hpp"
#include "fabric/loopback/loopback.hpp"
#include "ops/collectives/alltoall.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>

namespace offpath::testing {

class Cluster : public engine::Observer {
 public:
  struct Outcome {
    offpath_status_t status;
  };

  Cluster(uint32_t nodes, uint32_t ranks, uint64_t seed, engine::Config config = small_chunks())
      : network_(seed), random_(seed), ranks_(ranks) {
    for (uint32_t i = 0; i < nodes; ++i) nodes_.push_back(std::make_unique<Node>(*this, config));
    for (uint32_t rank = 0; rank < ranks; ++rank) node_of(rank).engine->add_client(rank + 1, memory_);
  }

  static engine::Config small_chunks() {
    engine::Config config;
    config.chunk_bytes = 64;  // many chunks from little data
    config.chunks_in_flight = 2;
    config.pool_chunks = 6;
    return config;
  }

  // Every rank's end of a team; `members[i]` is the cluster rank of member i. Returns the handles by member.
  std::vector<engine::TeamHandle> make_team(const std::vector<uint32_t>& members, uint8_t id) {
    std::vector<engine::TeamHandle> handles;
    for (uint32_t i = 0; i < members.size(); ++i) handles.push_back(join_team(members, id, i));
    return handles;
  }

  engine::TeamHandle join_team(const std::vector<uint32_t>& members, uint8_t id, uint32_t member) {
    engine::TeamSpec spec;
    spec.id.bytes[0] = id;
    spec.rank = member;
    spec.client = members[member] + 1;
    spec.context = 1000 + id;
    for (const uint32_t rank : members) {
      spec.members.push_back({node_index(rank) == node_index(members[member]), 0, node_of(rank).fabric->address()});
    }
    auto handle = node_of(members[member]).engine->add_team(std::move(spec));
    EXPECT_TRUE(handle.ok()) << handle.status().text();
    return handle.value();
  }

  engine::Engine& engine_of(uint32_t rank) { return *node_of(rank).engine; }
  fabric::Fabric& fabric_of(uint32_t rank) { return *node_of(rank).fabric; }
  uint32_t node_index(uint32_t rank) const { return rank % static_cast<uint32_t>(nodes_.size()); }
  void cut_node(uint32_t node) {
    network_.cut(node);
    cut_.insert(node);
  }
  void kill_client(uint32_t rank) { engine_of(rank).remove_client(rank + 1); }

  // One step of a random node; returns whether anything happened.
  bool step() {
    const uint32_t index = static_cast<uint32_t>(random_() % nodes_.size());
    return cut_.contains(index) ? false : nodes_[index]->step();
  }

  // Runs until nothing moves any more.
  void settle() {
    int idle = 0;
    while (idle < 20 * static_cast<int>(nodes_.size()) + 40) idle = step() ? 0 : idle + 1;
  }

  std::optional<offpath_status_t> outcome(uint32_t rank, uint64_t operation) const {
    const auto it = outcomes_.find({rank + 1, operation});
    return it == outcomes_.end() ? std::nullopt : std::optional(it->second);
  }
  const std::set<std::pair<uint64_t, uint32_t>>& lost_members(uint32_t rank) { return lost_[rank + 1]; }
  std::mt19937_64& random() { return random_; }
  uint32_t ranks() const { return ranks_; }
  size_t in_flight() const { return network_.in_flight(); }

  void on_pulled(engine::ClientId, uint64_t, uint32_t, uint64_t, bool) override {}
  void on_served(engine::ClientId, uint64_t, uint32_t, uint64_t, bool) override {}
  void on_finished(engine::ClientId client, uint64_t operation, base::Status status) override {
    const bool first = outcomes_.emplace(std::pair(client, operation), status.code()).second;
    EXPECT_TRUE(first) << "operation finished twice";
  }
  void on_member_lost(engine::ClientId client, uint64_t team, uint32_t rank) override {
    lost_[client].insert({team, rank});
  }

 private:
  struct Node : engine::Neighbours {
    Node(Cluster& owner, const engine::Config& config)
        : cluster(owner),
          fabric(owner.network_.make_endpoint()),
          engine(std::make_unique<engine::Engine>(config, *fabric, *this, owner)) {}
    void send(uint32_t, const wire::Message& message) override { mailbox.push_back(message); }
    std::shared_ptr<memory::Memory> memory_of(engine::ClientId) override { return cluster.memory_; }
    bool step() {
      if (mailbox.empty() || cluster.random_() % 2 == 0) return engine->progress() || !mailbox.empty();
      const wire::Message message = mailbox.front();
      mailbox.pop_front();
      engine->on_neighbour_message(message);
      return true;
    }
    Cluster& cluster;
    std::unique_ptr<fabric::Fabric> fabric;
    std::unique_ptr<engine::Engine> engine;
    std::deque<wire::Message> mailbox;
  };

  Node& node_of(uint32_t rank) { return *nodes_[node_index(rank)]; }

  fabric::LoopbackNetwork network_;
  std::mt19937_64 random_;
  uint32_t ranks_;
  std::shared_ptr<memory::Memory> memory_ = memory::make_direct();
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<std::pair<engine::ClientId, uint64_t>, offpath_status_t> outcomes_;
  std::map<engine::ClientId, std::set<std::pair<uint64_t, uint32_t>>> lost_;
  std::set<uint32_t> cut_;
};

inline uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

}  // namespace offpath::testing
