// SPDX-License-Identifier: BSD-3-Clause
// Four nodes of one rank each that gather by multicast.
#pragma once

#include "cluster.hpp"
#include "ops/collectives/collective.hpp"

#include <algorithm>

namespace offpath::testing {

inline constexpr uint32_t kNodes = 4;
inline constexpr uint64_t kBytes = 2000;  // 50 chunks
inline constexpr uint64_t kSilenceNs = 8000;

class Nodes {
 public:
  using Data = std::vector<uint8_t>;

  // With each look at the clock so much time passes.
  explicit Nodes(uint64_t seed = 2, engine::Config config = {}, uint64_t tick_ns = 1'000'000)
      : patience_(tick_ns < 1'000'000 ? 8 : 1) {
    const uint32_t nodes = kNodes;
    // It stands while the system still carries something: how often engines look meanwhile is not for them to say.
    config.now_ns = [this, tick_ns, now = std::make_shared<uint64_t>(1)] {
      return *now += cluster_ != nullptr && cluster_->system_carries() ? 0 : tick_ns;
    };
    config.silence_ns = kSilenceNs;
    cluster_ = std::make_unique<Cluster>(nodes, nodes, seed, config, std::make_shared<FarMemory>(), 1);
  }
  // As their programs do: whoever is first is heard by nobody else.
  void join() {
    for (uint32_t rank = 0; rank < kNodes; ++rank) join(rank);
  }
  void join(uint32_t rank) {
    if (team_[rank] == 0) team_[rank] = cluster_->join_team({0, 1, 2, 3}, 1, rank);
  }
  void post(uint32_t rank, uint64_t number, offpath_algorithm_t algorithm = OFFPATH_ALGORITHM_MULTICAST) {
    join(rank);
    const auto count = static_cast<uint32_t>(team_.size());
    Data& memory = memory_[{number, rank}];
    memory.resize(count * bytes_);
    ops::Collective collective;
    collective.kind = OFFPATH_ALLGATHER;
    collective.algorithm = algorithm;
    for (uint32_t i = 0; i < count; ++i) {
      collective.recv.push_back({i, 0, address_of(memory.data()) + i * bytes_, bytes_});
    }
    collective.send.push_back(collective.recv[rank]);
    for (uint64_t i = 0; i < bytes_; ++i) memory[rank * bytes_ + i] = value(number, rank, i);
    const auto topology = ops::Topology::make(rank, {10, 11, 12, 13});
    graph::Graph graph = ops::expand(collective, topology);
    graph.reduction = {OFFPATH_OP_NONE, element_};
    cluster_->engine_of(rank).post(team_[rank], number, std::move(graph), number);
  }
  // Rank `absent` does not take part.
  void allgather(uint64_t number, uint32_t absent = UINT32_MAX) {
    join();
    for (uint32_t rank = 0; rank < team_.size(); ++rank) {
      if (rank != absent) post(rank, number);
    }
    settle();
  }
  // Also what waits until it has been quiet for a while, by a clock that is slow.
  void settle() {
    for (int i = 0; i < patience_; ++i) cluster_->settle();
  }
  bool is_right(uint64_t number, uint32_t rank) const {
    const Data& memory = memory_.at({number, rank});
    for (uint64_t i = 0; i < memory.size(); ++i) {
      if (memory[i] != value(number, static_cast<uint32_t>(i / bytes_), i % bytes_)) return false;
    }
    return true;
  }
  void expect_right(uint64_t number) {
    for (uint32_t rank = 0; rank < team_.size(); ++rank) {
      EXPECT_EQ(cluster_->outcome(rank, number), OFFPATH_OK) << rank;
      EXPECT_TRUE(is_right(number, rank)) << rank;
      EXPECT_EQ(cluster_->engine_of(rank).refused_count(), 0U) << rank;
    }
  }
  size_t said(wire::Kind kind) const {
    size_t count = 0;
    for (uint32_t rank = 0; rank < team_.size(); ++rank) {
      const CountingFabric& fabric = cluster_->fabric_of(rank);
      for (const auto& kinds : {fabric.sent, fabric.batched}) {
        count += static_cast<size_t>(std::count(kinds.begin(), kinds.end(), kind));
      }
    }
    return count;
  }
  uint64_t datagrams() const {
    uint64_t count = 0;
    for (uint32_t rank = 0; rank < team_.size(); ++rank) {
      for (const auto& group : cluster_->fabric_of(rank).groups_joined) count += group->counts().sent;
    }
    return count;
  }
  void offer_groups(const fabric::GroupFaults& faults = {}) { groups_ = &cluster_->offer_groups(1, faults); }

  // Sent by each of them, in place of what is made up.
  void use(const Data& data, offpath_element_t element = OFFPATH_ELEMENT_NONE) {
    data_ = data;
    bytes_ = data.size();
    element_ = element;
  }
  const Data& memory_of(uint64_t number, uint32_t rank) const { return memory_.at({number, rank}); }
  engine::TeamHandle handle_of(uint32_t rank) const { return team_[rank]; }

  std::unique_ptr<Cluster> cluster_;
  fabric::LoopbackGroups* groups_ = nullptr;

 private:
  uint8_t value(uint64_t number, uint32_t owner, uint64_t i) const {
    if (!data_.empty()) return data_[i];
    return static_cast<uint8_t>(number * 101 + owner * 31 + i * 7 + i / 256);
  }
  std::vector<engine::TeamHandle> team_ = std::vector<engine::TeamHandle>(kNodes);
  std::map<std::pair<uint64_t, uint32_t>, Data> memory_;  // by operation and rank
  const int patience_;
  Data data_;
  uint64_t bytes_ = kBytes;
  offpath_element_t element_ = OFFPATH_ELEMENT_NONE;
};

}  // namespace offpath::testing
