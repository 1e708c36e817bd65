// SPDX-License-Identifier: BSD-3-Clause
// Random programs of real collectives, with blocks that are pushed and blocks that are asked for: several teams joined
// late and left early, members posting in their own time, many operations outstanding, processes that end, services
// that are lost. Results against the plain reference of ops/. OFFPATH_TEST_SEED repeats one program;
// OFFPATH_TEST_ROUNDS asks for more.
#include "planned.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace offpath::testing {
namespace {

enum class Ending { all_stay, some_leave, node_lost, process_lost };

struct Group {
  std::vector<uint32_t> members;
  uint8_t id = 0;
  bool in_order = false;
  std::vector<Planned> plan;
  std::vector<engine::TeamHandle> handles;  // 0: not joined yet
  std::vector<size_t> posted;               // operations, by member
  uint64_t context(size_t operation) const { return id * 1000u + operation; }
};

class Program {
 public:
  Program(uint64_t seed, Ending ending) : random_(seed), ending_(ending) {
    const auto ranks = static_cast<uint32_t>(2 + random_() % (random_() % 8 == 0 ? 23 : 7));
    nodes_ = static_cast<uint32_t>(1 + random_() % std::min(ranks, 6U));
    std::shared_ptr<memory::Port> memory = memory::make_direct();
    if (random_() % 2 == 0) memory = std::make_shared<FarMemory>();
    const engine::Config config = random_config();
    cluster_ = std::make_unique<Cluster>(nodes_, ranks, seed, config, memory);
    if (random_() % 3 != 0) multicast_ = &cluster_->offer_groups(seed, random_faults());
    groups_.resize(1 + random_() % 3);
    for (Group& group : groups_) plan(group, static_cast<uint8_t>(&group - groups_.data() + 1), config);
  }

  void run() {
    size_t left = 0;
    for (const Group& group : groups_) left += group.members.size() * group.plan.size();
    const size_t lost_at = random_() % (random_() % 4 == 0 ? left : left / 10 + 1);  // mostly after a while
    bool to_lose = ending_ == Ending::node_lost;
    while (left > 0) {
      for (uint64_t i = random_() % 12; i > 0; --i) cluster_->step();
      if (random_() % 50 == 0) cluster_->engine_of(any_rank()).tell_senders();
      if (multicast_ != nullptr && random_() % 20 == 0) multicast_->set_faults(random_faults());
      if (random_() % 50 == 0) cluster_->stop_node(cluster_->node_index(any_rank()));
      if (random_() % 30 == 0) cluster_->go_on();
      if (to_lose && left <= lost_at + 1) lose_node(), to_lose = false;
      left -= post_one() ? 1 : 0;
    }
    for (uint64_t i = random_() % 100; i > 0; --i) cluster_->step();
    cluster_->go_on();
    if (ending_ == Ending::process_lost) {
      for (uint64_t i = random_() % 300; i > 0; --i) cluster_->step();
      gone_ = any_rank();
      cluster_->kill_client(gone_);
    }
    finish();
    check();
  }

 private:
  engine::Config random_config() {
    constexpr size_t kChunks[] = {64, 150, 300, 1000, 8192};
    constexpr size_t kPushed[] = {0, 40, 64, 100, 300, 4096, 4096};
    engine::Config config;
    config.chunk_bytes = kChunks[random_() % std::size(kChunks)];
    config.chunks_in_flight = 1 + static_cast<uint32_t>(random_() % 4);
    config.pool_chunks = 2 + static_cast<uint32_t>(random_() % 12);
    config.batched_bytes = random_() % config.chunk_bytes;
    config.multicast_chains = 1 + static_cast<uint32_t>(random_() % 3);
    config.now_ns = [now = std::make_shared<uint64_t>(1)] { return *now += 10'000'000; };
    config.pushed_bytes = kPushed[random_() % std::size(kPushed)];
    return config;
  }

  fabric::GroupFaults random_faults() { return drawn_faults(random_, {0, 0, 0.01, 0.1, 0.5, 1}, 4, 4); }

  void plan(Group& group, uint8_t id, const engine::Config& config) {
    group.id = id;
    group.in_order = random_() % 3 == 0;
    group.members.resize(cluster_->ranks());
    std::iota(group.members.begin(), group.members.end(), 0);
    std::shuffle(group.members.begin(), group.members.end(), random_);
    group.members.resize(1 + random_() % group.members.size());
    group.handles.assign(group.members.size(), 0);
    group.posted.assign(group.members.size(), 0);
    const bool many = group.members.size() < 6 && random_() % 4 == 0;  // more than may lie at a receiver
    const bool tasks = random_() % 3 == 0;  // of multicast, several at a time, and others between them
    const size_t count = many ? 40 + random_() % 60 : 1 + random_() % (tasks ? 20 : 8);
    for (size_t i = 0; i < count; ++i) group.plan.emplace_back(random_case(group, many, tasks, config), random_());
  }

  const Algorithm& random_algorithm(bool tasks) {
    // The first are exchanges, in which some blocks that are asked for were never sent: a process that has ended does
    // not say so any more.
    const size_t first = ending_ == Ending::some_leave ? 1 : 0;
    const bool multicast = tasks && random_() % 2 == 0;
    while (true) {
      const Algorithm& drawn = kAlgorithms[first + random_() % (std::size(kAlgorithms) - first)];
      const bool can = drawn.kind == OFFPATH_BCAST || drawn.kind == OFFPATH_ALLGATHER;
      if (!tasks || (can && (!multicast || drawn.algorithm == OFFPATH_ALGORITHM_MULTICAST))) return drawn;
    }
  }

  Case random_case(const Group& group, bool small, bool tasks, const engine::Config& config) {
    const Algorithm& algorithm = random_algorithm(tasks);
    Case c;
    c.kind = algorithm.kind;
    c.algorithm = algorithm.algorithm;
    for (const uint32_t rank : group.members) c.node_keys.push_back(100 + cluster_->node_index(rank));
    c.root = static_cast<uint32_t>(random_() % c.node_keys.size());
    const uint64_t limit = std::min<uint64_t>(config.pushed_bytes, 1000) / kElementBytes;
    const uint64_t elements = small ? random_() % 6 : random_() % 2 == 0 ? limit + random_() % 3 : random_() % 150;
    c.bytes = elements * kElementBytes;
    c.in_place = random_() % 2 == 0;
    c.layouts = random_() % 2 == 0;
    c.equal = random_() % 2 == 0;
    c.tuning.segment_bytes = uint64_t{64} << random_() % 7;
    c.tuning.window = 2 + static_cast<uint32_t>(random_() % 4);
    c.tuning.segments_max = random_() % 3 == 0 ? 3 : 4096;
    c.tuning.pairwise_nodes = random_() % 2 == 0 ? 1 : 16;
    return c;
  }

  uint32_t any_rank() { return static_cast<uint32_t>(random_() % cluster_->ranks()); }
  bool is_dead(uint32_t rank) const { return rank == gone_ || cluster_->node_index(rank) == lost_node_; }

  bool post_one() {
    Group& group = groups_[random_() % groups_.size()];
    const auto member = static_cast<uint32_t>(random_() % group.members.size());
    const uint32_t rank = group.members[member];
    const size_t operation = group.posted[member];
    if (operation == group.plan.size()) return false;
    ++group.posted[member];
    if (is_dead(rank)) return true;
    engine::Engine& engine = cluster_->engine_of(rank);
    if (group.handles[member] == 0) group.handles[member] = cluster_->join_team(group.members, group.id, member);
    engine.post(group.handles[member], 3 * operation, group.plan[operation].graph(member, group.in_order),
                group.context(operation));
    if (group.posted[member] == group.plan.size() && random_() % 2 == 0) engine.remove_team(group.handles[member]);
    return true;
  }

  void lose_node() {
    lost_node_ = cluster_->node_index(any_rank());
    cluster_->cut_node(lost_node_);
  }

  bool has_ended(uint32_t rank) const {
    for (const Group& group : groups_) {
      for (uint32_t member = 0; member < group.members.size(); ++member) {
        if (group.members[member] != rank) continue;
        for (size_t i = 0; i < group.plan.size(); ++i) {
          if (!cluster_->outcome(rank, group.context(i))) return false;
        }
      }
    }
    return true;
  }

  void finish() {
    for (int i = 0; ending_ == Ending::some_leave && i < 200; ++i) {
      for (int steps = 0; steps < 10; ++steps) cluster_->step();
      const uint32_t rank = any_rank();
      if (left_.contains(rank) || !has_ended(rank)) continue;
      cluster_->kill_client(rank);  // it has done its part
      left_.insert(rank);
    }
    for (int i = 0; i < 3; ++i) {
      cluster_->settle();
      for (uint32_t rank = 0; rank < cluster_->ranks(); ++rank) {
        if (!is_dead(rank)) cluster_->engine_of(rank).tell_senders();
      }
    }
    cluster_->settle();
  }

  void check() {
    const bool lossless = ending_ == Ending::all_stay || ending_ == Ending::some_leave;
    for (const Group& group : groups_) {
      for (size_t i = 0; i < group.plan.size(); ++i) {
        for (uint32_t member = 0; member < group.members.size(); ++member) {
          const uint32_t rank = group.members[member];
          if (is_dead(rank)) continue;
          const auto outcome = cluster_->outcome(rank, group.context(i));
          SCOPED_TRACE("member " + std::to_string(member) + ", operation " + std::to_string(i) + ": " +
                       group.plan[i].text);
          ASSERT_TRUE(outcome.has_value()) << "waits for ever";
          ASSERT_TRUE(!lossless || *outcome == OFFPATH_OK) << offpath_status_string(*outcome);
          if (*outcome != OFFPATH_OK) continue;
          ASSERT_TRUE(group.plan[i].is_right(member)) << "wrong bytes";
        }
      }
    }
    if (!lossless) return;
    EXPECT_EQ(cluster_->in_flight(), 0U);
    for (uint32_t rank = 0; rank < cluster_->ranks(); ++rank) {
      EXPECT_EQ(cluster_->engine_of(rank).refused_count(), 0U) << "of honest messages";
      EXPECT_EQ(cluster_->engine_of(rank).unconfirmed(), 0U);
      EXPECT_FALSE(cluster_->engine_of(rank).senders_wait());
    }
  }

  std::mt19937_64 random_;
  Ending ending_;
  uint32_t nodes_ = 0;
  std::unique_ptr<Cluster> cluster_;
  fabric::LoopbackGroups* multicast_ = nullptr;
  std::vector<Group> groups_;
  std::set<uint32_t> left_;
  uint32_t lost_node_ = UINT32_MAX, gone_ = UINT32_MAX;
};

class RandomCollectives : public ::testing::TestWithParam<Ending> {};

TEST_P(RandomCollectives, GiveWhatThePlainReferenceGivesOrFail) {
  const char* seed_text = std::getenv("OFFPATH_TEST_SEED");
  const char* rounds_text = std::getenv("OFFPATH_TEST_ROUNDS");
  const uint64_t rounds = seed_text != nullptr     ? 1
                          : rounds_text != nullptr ? std::strtoull(rounds_text, nullptr, 0)
                                                   : 100;
  const uint64_t first = seed_text != nullptr ? std::strtoull(seed_text, nullptr, 0) : std::random_device{}();
  for (uint64_t seed = first; seed < first + rounds && !HasFailure(); ++seed) {
    SCOPED_TRACE("OFFPATH_TEST_SEED=" + std::to_string(seed));
    Program(seed, GetParam()).run();
  }
}

std::string ending_name(const ::testing::TestParamInfo<Ending>& info) {
  constexpr const char* kNames[] = {"AllStay", "SomeLeave", "NodeLost", "ProcessLost"};
  return kNames[static_cast<int>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Endings, RandomCollectives,
                         ::testing::Values(Ending::all_stay, Ending::some_leave, Ending::node_lost,
                                           Ending::process_lost),
                         ending_name);

}  // namespace
}  // namespace offpath::testing
