// SPDX-License-Identifier: BSD-3-Clause
// A whole cluster in one process: nodes with one engine each on a network, ranks spread over the nodes. With
// OFFPATH_TEST_WORKERS=N the services have N workers, so engines, each; the last one gets more of the node's ranks. With
// OFFPATH_TEST_CODEC what can be compressed is.
#pragma once

#include "engine/engine.hpp"
#include "counting_fabric.hpp"
#include "fabric/loopback/groups.hpp"
#include "late_port.hpp"
#include "network.hpp"

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

namespace offpath::testing {

// Memory that must be copied out and in, as a real client's, and that has holes.
class FarMemory : public memory::Port {
 public:
  memory::Outcome read(void* to, uint64_t address, size_t bytes, memory::Ticket) const override;
  memory::Outcome write(uint64_t address, const void* from, size_t bytes, memory::Ticket) const override;
  void tear(const void* begin, size_t bytes) { holes_.emplace_back(reinterpret_cast<uint64_t>(begin), bytes); }

 private:
  bool inside_hole(uint64_t address, size_t bytes) const;

  std::unique_ptr<memory::Port> direct_ = memory::make_direct();
  std::vector<std::pair<uint64_t, size_t>> holes_;
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
          std::shared_ptr<memory::Port> memory = memory::make_direct(), uint32_t workers = workers_wanted());
  ~Cluster();

  static engine::Config small_chunks();

  // From now on there is multicast, with these faults.
  fabric::LoopbackGroups& offer_groups(uint64_t seed, const fabric::GroupFaults& faults);

  // Every rank's end of a team; `members[i]` is the cluster rank of member i. Returns the handles by member.
  std::vector<engine::TeamHandle> make_team(const std::vector<uint32_t>& members, uint8_t id,
                                            const char* compress = nullptr);
  engine::TeamHandle join_team(const std::vector<uint32_t>& members, uint8_t id, uint32_t member,
                               const char* compress = nullptr);

  engine::Engine& engine_of(uint32_t rank) { return engine_at(engine_index(rank)); }
  CountingFabric& fabric_of(uint32_t rank);
  engine::Engine& engine_at(uint32_t index);
  uint32_t engines() const { return static_cast<uint32_t>(engines_.size()); }
  uint32_t node_index(uint32_t rank) const { return rank % count_; }
  uint32_t engine_index(uint32_t rank) const {
    const uint32_t worker = std::min(rank / count_ % (workers_ + 1), workers_ - 1);
    return worker * count_ + rank % count_;
  }
  void cut_node(uint32_t node);
  // One worker: it does nothing any more, and its peers are told.
  void cut_engine(uint32_t index);
  // The workers of two ranks lose each other, as when their connection breaks.
  void part(uint32_t rank, uint32_t other);
  // The same, and they can connect again. False: not on this network.
  bool disconnect(uint32_t rank, uint32_t other) {
    return network_->disconnect(engine_index(rank), engine_index(other));
  }
  bool is_cut(uint32_t index) const { return cut_.contains(index); }
  // It does nothing any more, and nobody is told.
  void silence_node(uint32_t node);
  // It does nothing until all that were stopped go on.
  void stop_node(uint32_t node);
  void go_on() { stopped_.clear(); }
  void kill_client(uint32_t rank) { engine_of(rank).remove_client(rank + 1); }

  // One step of a random engine; returns whether anything happened.
  bool step();
  // One round of a worker.
  bool step(uint32_t index);
  // Runs until nothing moves any more.
  void settle();

  std::optional<offpath_status_t> outcome(uint32_t rank, uint64_t operation) const;
  const std::set<std::pair<uint64_t, uint32_t>>& lost_members(uint32_t rank) { return lost_[rank + 1]; }
  engine::Loss how_lost(uint32_t rank, uint64_t team, uint32_t member) { return how_lost_[rank + 1][{team, member}]; }
  std::mt19937_64& random() { return random_; }
  uint32_t ranks() const { return ranks_; }
  size_t in_flight() const { return network_->in_flight(); }
  // Something is under way that arrives when the system likes to.
  bool system_carries() const { return network_->patience() >= 0 && network_->in_flight() > 0; }
  const Told& told(uint32_t rank, uint64_t operation) { return told_[{rank + 1, operation}]; }

  void on_first_byte(engine::ClientId client, uint64_t operation) override;
  void on_step(engine::ClientId client, uint64_t operation, uint32_t, uint64_t bytes, bool) override;
  void on_served(engine::ClientId client, uint64_t operation, uint32_t, uint64_t bytes, bool) override;
  void on_sampled(engine::ClientId client, const codecs::Chooser::Sampled& sampled) override;
  void on_coded(engine::ClientId client, const engine::Coded& coded) override;
  void on_finished(engine::ClientId client, uint64_t operation, base::Status status) override;
  void on_member_lost(engine::ClientId client, uint64_t team, uint32_t rank, engine::Loss how) override;

 private:
  struct Worker;

  static uint32_t workers_wanted();

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
fabric::GroupFaults drawn_faults(std::mt19937_64& random, const std::array<double, 6>& parts, size_t for_all,
                                 size_t room);

inline uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }
inline graph::Place at(const std::vector<uint8_t>& buffer, size_t offset = 0) {
  return graph::client_place(address_of(buffer.data() + offset));
}

std::vector<uint32_t> everybody(uint32_t ranks);

}  // namespace offpath::testing
