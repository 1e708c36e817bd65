// SPDX-License-Identifier: BSD-3-Clause
// Programs on four nodes whose services sleep as workers do: as long as their engine says, and deaf where it says that it is worth it.
// Time passes only while all of them sleep, so who waits for what nobody will wake it for waits for ever, and is found.
#pragma once

#include "cluster.hpp"
#include "fabric/multicast/pace.hpp"
#include "ops/collectives/collective.hpp"

#include <algorithm>

namespace offpath::testing {

// Of a loopback's group: what leaves at a rate, a batch at a time.
class PacedGroup : public fabric::Group {
 public:
  explicit PacedGroup(std::shared_ptr<fabric::Group> group) : group_(std::move(group)) {}
  size_t chunk_bytes() const override { return group_->chunk_bytes(); }
  bool push(uint64_t task, uint32_t chunk, fabric::Bytes bytes) override {
    if (batch_.size() == kBatch) return false;
    batch_.push_back({task, chunk, {bytes.begin(), bytes.end()}});
    return true;
  }
  bool progress(uint64_t now_ns, fabric::Hearer& hearer) override {
    const bool leaves = !batch_.empty() && pace_.wait_ns(now_ns) == 0;
    for (const Datagram& next : batch_) {
      if (!leaves || !group_->push(next.task, next.chunk, next.bytes)) break;
      pace_.spend(static_cast<double>(next.bytes.size()));
    }
    if (leaves) batch_.clear();
    return group_->progress(now_ns, hearer) || leaves;
  }
  bool idle() const override { return batch_.empty() && group_->idle(); }
  uint64_t wait_ns(uint64_t now_ns) override {
    return batch_.empty() ? group_->wait_ns(now_ns) : pace_.wait_ns(now_ns);
  }
  void set_rate(double bytes_per_ns) override {
    rate_ = bytes_per_ns;
    pace_.set_rate(rate_);
  }
  double rate() const { return rate_; }
  int event_fd() const override { return -1; }
  const fabric::GroupCounts& counts() const override { return group_->counts(); }

 private:
  struct Datagram {
    uint64_t task;
    uint32_t chunk;
    std::vector<uint8_t> bytes;
  };
  static constexpr size_t kBatch = 16;
  const std::shared_ptr<fabric::Group> group_;
  double rate_ = 0;
  fabric::multicast::Pace pace_{0, 1};
  std::vector<Datagram> batch_;
};

class Sleepers {
 public:
  static constexpr uint32_t kNodes = 4;
  // What a program does again and again on one of its communicators.
  struct Loop {
    offpath_collective_kind_t kind;
    offpath_algorithm_t algorithm;
    uint64_t bytes;  // of each member, or for each
    uint64_t count;
  };

  Sleepers(uint64_t seed, engine::Config config, std::vector<Loop> loops, uint32_t ranks, uint32_t workers)
      : ranks_(ranks), random_(seed), loops_(std::move(loops)) {
    config.now_ns = [this] { return now_ns_; };
    cluster_ = std::make_unique<Cluster>(kNodes, ranks_, seed, config, std::make_shared<FarMemory>(), workers);
    asleep_.resize(cluster_->engines());
    std::vector<uint32_t> members;
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      members.push_back(rank);
      node_keys_.push_back(10 + cluster_->node_index(rank));
    }
    for (uint32_t team = 0; team < loops_.size(); ++team) {
      handles_.push_back(cluster_->make_team(members, static_cast<uint8_t>(team + 1)));
      posted_.emplace_back(ranks_, 0);
      ended_.emplace_back(ranks_, 0);
    }
  }
  void offer_groups(const fabric::GroupFaults& faults) {
    groups_ = &cluster_->offer_groups(random_(), faults);
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      cluster_->fabric_of(rank).wrap_group = [this](std::shared_ptr<fabric::Group> group) {
        last_group_ = std::make_shared<PacedGroup>(std::move(group));
        return last_group_;
      };
    }
  }
  fabric::LoopbackGroups* groups() { return groups_; }

  // Until all loops have ended. False: everybody sleeps for ever, or somebody is awake without end and does nothing.
  bool run(const std::function<void()>& now_and_then = [] {}) {
    for (uint64_t rounds = 0;; ++rounds) {
      if (rounds % 1000 == 0) now_and_then();
      if (!post_all()) return true;
      const auto index = static_cast<uint32_t>(random_() % asleep_.size());
      Sleep& sleep = asleep_[index];
      if (sleep.deaf_until_ns > now_ns_) {
        sleep.rounds = kIdle;
      } else if (cluster_->step(index)) {
        for (Sleep& each : asleep_) each.rounds = 0;
      } else {
        fall_asleep(index);
      }
      const bool all = std::all_of(asleep_.begin(), asleep_.end(), [](const Sleep& s) { return s.rounds >= kIdle; });
      if (spins_ > kSpins || (all && !pass_time())) return false;
    }
  }

  const PacedGroup& last_group() const { return *last_group_; }
  bool all_right() const { return wrong_ == 0; }
  // What is under way, for a person.
  std::string text() const {
    std::string out;
    for (uint32_t team = 0; team < loops_.size(); ++team) {
      for (uint32_t rank = 0; rank < ranks_; ++rank) {
        const uint64_t number = posted_[team][rank] - 1;
        const auto standing = cluster_->engine_of(rank).standing(handles_[team][rank], number);
        out += "team " + std::to_string(team) + " rank " + std::to_string(rank) + " operation " +
               std::to_string(number) + ": " + std::to_string(static_cast<int>(standing.waits));
        for (const uint32_t member : standing.members) out += " " + std::to_string(member);
        out += "\n";
      }
    }
    return out;
  }

 private:
  static constexpr uint64_t kLongestNapNs = 4'000'000;
  static constexpr int kIdle = 8;  // rounds without anything to do: what comes is taken a message at a time
  static constexpr int kSpins = 1000;
  struct Sleep {
    uint64_t deaf_until_ns = 0;
    int rounds = 0;
  };

  // As Worker::sleep.
  void fall_asleep(uint32_t index) {
    Sleep& sleep = asleep_[index];
    engine::Engine& engine = cluster_->engine_at(index);
    const uint64_t wait_ns = engine.wait_ns(), rest_ns = engine.rest_ns();
    spins_ = wait_ns == 0 ? spins_ + 1 : 0;
    if (wait_ns == 0) return;  // a round more
    ++sleep.rounds;
    if (rest_ns > 0) sleep.deaf_until_ns = now_ns_ + std::min({rest_ns, wait_ns, kLongestNapNs});
  }

  bool pass_time() {
    uint64_t wait_ns = UINT64_MAX;
    for (uint32_t index = 0; index < asleep_.size(); ++index) {
      Sleep& sleep = asleep_[index];
      const bool deaf = sleep.deaf_until_ns > now_ns_;
      wait_ns = std::min(wait_ns, deaf ? sleep.deaf_until_ns - now_ns_ : cluster_->engine_at(index).wait_ns());
      sleep.rounds = 0;
    }
    if (wait_ns == UINT64_MAX) return false;
    now_ns_ += wait_ns;
    return true;
  }

  // A rank posts what comes next when what was before has ended. False: all is over.
  bool post_all() {
    bool any = false;
    for (uint32_t team = 0; team < loops_.size(); ++team) {
      for (uint32_t rank = 0; rank < ranks_; ++rank) {
        uint64_t& posted = posted_[team][rank];
        uint64_t& ended = ended_[team][rank];
        if (ended < posted && is_over(team, rank, ended)) check(team, rank, ended++);
        any |= ended < loops_[team].count;
        if (ended < posted || posted == loops_[team].count) continue;
        post(team, rank, posted++);
        for (Sleep& each : asleep_) each.rounds = 0;
      }
    }
    return any;
  }
  static uint64_t context(uint32_t team, uint64_t number) { return team * 1'000'000 + number; }
  bool is_over(uint32_t team, uint32_t rank, uint64_t number) const {
    return cluster_->outcome(rank, context(team, number)).has_value();
  }

  static uint8_t value(uint64_t number, uint32_t from, uint32_t to, uint64_t i) {
    return static_cast<uint8_t>(number * 101 + from * 31 + to * 17 + i * 7 + i / 256);
  }
  void post(uint32_t team, uint32_t rank, uint64_t number) {
    const Loop& loop = loops_[team];
    auto& memory = memory_[{team, rank}];
    const bool gathers = loop.kind == OFFPATH_ALLGATHER;
    memory.assign(2 * ranks_ * loop.bytes, 0);
    uint8_t* const send = memory.data() + ranks_ * loop.bytes;
    for (uint32_t to = 0; to < (gathers ? 1 : ranks_); ++to) {
      for (uint64_t i = 0; i < loop.bytes; ++i) {
        send[to * loop.bytes + i] = value(number, rank, gathers ? 0 : to, i);
      }
    }
    ops::Collective collective;
    collective.kind = loop.kind;
    collective.algorithm = loop.algorithm;
    for (uint32_t i = 0; i < ranks_; ++i) {
      collective.recv.push_back({i, 0, address_of(memory.data()) + i * loop.bytes, loop.bytes});
      if (!gathers) collective.send.push_back({i, 0, address_of(send) + i * loop.bytes, loop.bytes});
    }
    if (gathers) collective.send.push_back({rank, 0, address_of(send), loop.bytes});
    graph::Graph graph = ops::expand(collective, ops::Topology::make(rank, node_keys_));
    cluster_->engine_of(rank).post(handles_[team][rank], number, std::move(graph), context(team, number));
  }
  void check(uint32_t team, uint32_t rank, uint64_t number) {
    const Loop& loop = loops_[team];
    const auto& memory = memory_[{team, rank}];
    bool right = cluster_->outcome(rank, context(team, number)) == OFFPATH_OK;
    for (uint32_t from = 0; from < ranks_; ++from) {
      for (uint64_t i = 0; i < loop.bytes; ++i) {
        right &= memory[from * loop.bytes + i] == value(number, from, loop.kind == OFFPATH_ALLGATHER ? 0 : rank, i);
      }
    }
    wrong_ += right ? 0 : 1;
  }

  const uint32_t ranks_;
  std::mt19937_64 random_;
  const std::vector<Loop> loops_;
  std::vector<uint64_t> node_keys_;
  uint64_t now_ns_ = 1;
  std::unique_ptr<Cluster> cluster_;
  fabric::LoopbackGroups* groups_ = nullptr;
  std::shared_ptr<PacedGroup> last_group_;
  std::vector<Sleep> asleep_;
  int spins_ = 0;
  std::vector<std::vector<engine::TeamHandle>> handles_;  // by team and rank
  std::vector<std::vector<uint64_t>> posted_, ended_;     // the same: so many
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint8_t>> memory_;
  uint64_t wrong_ = 0;
};

}  // namespace offpath::testing
