// SPDX-License-Identifier: BSD-3-Clause
// Random operations that end together or by pairs (graph::Ends), and services that die among them. Whoever is told the end
// of an operation and knows of no loss may rely on it that all others, or all that have something from it, have their whole
// result, as the program overwrites the inputs then (docs/design/0044-recovery.md). OFFPATH_TEST_SEED repeats one program;
// OFFPATH_TEST_SEEDS asks for more.
#include "planned.hpp"
#include "sparse.hpp"

#include <cmath>
#include <cstdlib>

namespace offpath::testing {
namespace {

using graph::Ends;

enum class Stage { unposted, posted, arrived, told, failed };

struct Act {
  std::optional<Planned> together;
  std::optional<Sparse> by_pairs;
  std::vector<Stage> stages;      // by member, as its client knows
  std::vector<bool> has_arrived;  // the same; what it was told stands
  bool reduces = false;

  bool has_part(uint32_t member) const { return together || by_pairs->has_part(member); }
  bool is_right(uint32_t member) const {
    return together ? together->is_right(member) : by_pairs->memory[member] == by_pairs->expected[member];
  }
  // Whether the one may be told only when the other has arrived.
  bool waits_for(uint32_t member, uint32_t other) const {
    return together || std::any_of(by_pairs->blocks.begin(), by_pairs->blocks.end(), [&](const Sparse::Block& block) {
             return block.from == member && block.to == other;
           });
  }
};

// What has been seen at the moment of a loss, in all programs.
struct Seen {
  uint64_t losses = 0, told_and_untold = 0, arrived_at_the_dead = 0, pairs_cut = 0, reductions_cut = 0, ok_after = 0;
};

class Witness : public Cluster {
 public:
  using Cluster::Cluster;
  void on_arrived(engine::ClientId client, uint64_t operation) override { arrived(client, operation); }
  void on_finished(engine::ClientId client, uint64_t operation, base::Status status) override {
    Cluster::on_finished(client, operation, status);
    finished(client, operation, status);
  }
  std::function<void(engine::ClientId, uint64_t)> arrived;
  std::function<void(engine::ClientId, uint64_t, const base::Status&)> finished;
};

class Crash {
 public:
  explicit Crash(uint64_t seed, Seen& seen) : random_(seed), seen_(seen) {
    nodes_ = 2 + static_cast<uint32_t>(random_() % 3);
    if (random_() % 4 == 0) nodes_ += static_cast<uint32_t>(random_() % 7);
    config_.arrivals_radix = 2 + static_cast<uint32_t>(random_() % 3);
    const auto ranks = static_cast<uint32_t>(nodes_ + random_() % (2 * nodes_ + 1));
    config_.chunk_bytes = std::array{64, 300, 1000, 8192}[random_() % 4];
    config_.chunks_in_flight = 1 + static_cast<uint32_t>(random_() % 4);
    config_.pool_chunks = 2 + static_cast<uint32_t>(random_() % 12);
    config_.batched_bytes = random_() % config_.chunk_bytes;
    config_.pushed_bytes = std::array{0, 64, 300, 4096}[random_() % 4];
    config_.now_ns = [now = std::make_shared<uint64_t>(1)] { return *now += 10'000'000; };
    cluster_ = std::make_unique<Witness>(nodes_, ranks, seed, config_);
    cluster_->arrived = [this](engine::ClientId client, uint64_t context) { on_arrived(client - 1, context); };
    cluster_->finished = [this](engine::ClientId client, uint64_t context, const base::Status& status) {
      on_finished(client - 1, context, status);
    };
    if (random_() % 2 == 0) cluster_->offer_groups(seed, {});
    teams_.resize(1 + random_() % 2);
    for (size_t i = 0; i < teams_.size(); ++i) plan(teams_[i], static_cast<uint8_t>(i + 1));
  }

  // What was wrong first.
  std::string run() {
    const uint64_t kind = random_() % 8;  // 0: nothing is lost
    const uint64_t pace = 1 + random_() % 40;
    uint64_t first =
        kind == 0 ? UINT64_MAX : static_cast<uint64_t>(std::exp2(3 + static_cast<double>(random_() % 90) / 10));
    uint64_t second = kind != 0 && nodes_ > 2 && random_() % 3 == 0 ? first + random_() % 300 : UINT64_MAX;
    int idle = 0;
    for (uint64_t i = 0; left_ > 0 || idle < 300; ++i) {
      idle = cluster_->step() ? 0 : idle + 1;
      if (random_() % pace == 0) post_one();
      if (random_() % 100 == 0) look(any_rank());
      if (i == first && kind < 3 && left_ > 0 && !all_are_there()) ++first, ++second;
      if (i == first) lose(kind);
      if (i == second) lose(7);
    }
    for (int i = 0; i < 4; ++i) {
      uint64_t rounds = 0;
      for (idle = 0; idle < 300 && rounds < 300'000; ++rounds) idle = cluster_->step() ? 0 : idle + 1;
      if (rounds == 300'000) note("never comes to rest");
      if (!problem_.empty()) return problem_;
      cluster_->settle();
      for (uint32_t rank = 0; rank < cluster_->ranks(); ++rank) look(rank);
    }
    cluster_->settle();
    check_end();
    return problem_;
  }

 private:
  struct Ours {
    std::vector<uint32_t> members;
    uint8_t id = 0;
    bool in_order = false;
    std::vector<Act> acts;
    std::vector<engine::TeamHandle> handles;  // 0: not joined yet
    std::vector<size_t> next;                 // operation, by member
  };

  void note(const std::string& text) { problem_ = problem_.empty() ? text : problem_; }
  uint32_t any_rank() { return static_cast<uint32_t>(random_() % cluster_->ranks()); }
  void look(uint32_t rank) {
    if (dead_nodes_.contains(cluster_->node_index(rank))) return;
    cluster_->engine_of(rank).watch(0);
    cluster_->engine_of(rank).tell_senders();
  }

  void plan(Ours& ours, uint8_t id) {
    ours.id = id;
    ours.in_order = random_() % 4 == 0;
    ours.members = everybody(cluster_->ranks());
    std::shuffle(ours.members.begin(), ours.members.end(), random_);
    if (random_() % 3 == 0) ours.members.resize(2 + random_() % (ours.members.size() - 1));
    const auto size = static_cast<uint32_t>(ours.members.size());
    ours.handles.resize(size), ours.next.resize(size);
    for (uint64_t count = 1 + random_() % 6; count > 0; --count) {
      Act act;
      act.stages.resize(size), act.has_arrived.resize(size);
      if (random_() % 3 == 0) {
        act.by_pairs.emplace(size, random_, [this] { return random_bytes(); });
      } else {
        const Case c = random_case(ours);
        act.reduces = c.kind >= OFFPATH_REDUCE;
        act.together.emplace(c, random_());
      }
      ours.acts.push_back(std::move(act));
      left_ += size;
    }
  }

  // Around the limits, and now and then several chunks.
  size_t random_bytes() {
    const size_t around = random_() % 2 == 0 ? config_.pushed_bytes : config_.chunk_bytes;
    const size_t drawn = random_() % 8;
    if (drawn == 0) return 0;
    if (drawn == 1) return around * (1 + random_() % 2) + random_() % 9;
    return drawn == 2 ? random_() % (3 * config_.chunk_bytes) : random_() % 200;
  }

  Case random_case(const Ours& ours) {
    const Algorithm& algorithm = kAlgorithms[random_() % std::size(kAlgorithms)];
    Case c;
    c.kind = algorithm.kind;
    c.algorithm = algorithm.algorithm;
    for (const uint32_t rank : ours.members) c.node_keys.push_back(100 + cluster_->node_index(rank));
    c.root = static_cast<uint32_t>(random_() % c.node_keys.size());
    c.bytes = random_bytes() / kElementBytes * kElementBytes;
    c.in_place = random_() % 2 == 0;
    c.equal = random_() % 2 == 0;
    c.tuning.segment_bytes = uint64_t{64} << random_() % 7;
    c.tuning.pairwise_nodes = random_() % 2 == 0 ? 1 : 16;
    return c;
  }

  void post_one() {
    Ours& ours = teams_[random_() % teams_.size()];
    const auto member = static_cast<uint32_t>(random_() % ours.members.size());
    if (ours.next[member] == ours.acts.size()) return;
    const size_t number = ours.next[member]++;
    --left_;
    Act& act = ours.acts[number];
    const uint32_t rank = ours.members[member];
    if (is_dead(rank)) return;
    if (ours.handles[member] == 0) ours.handles[member] = cluster_->join_team(ours.members, ours.id, member);
    if (!act.has_part(member)) return;
    act.stages[member] = Stage::posted;
    graph::Graph graph = act.together ? act.together->graph(member, ours.in_order) : act.by_pairs->graph(member);
    graph.ends = act.together ? Ends::together : Ends::by_pairs;
    cluster_->engine_of(rank).post(ours.handles[member], 2 * number, std::move(graph), ours.id * 1000 + number);
  }

  bool is_dead(uint32_t rank) const { return gone_.contains(rank) || dead_nodes_.contains(cluster_->node_index(rank)); }

  // Mostly a whole service; else one member's, or its process.
  void lose(uint64_t kind) {
    const uint32_t rank = any_rank();
    if (dead_nodes_.size() + 2 > nodes_ || is_dead(rank)) return;
    if (kind <= 2 && !all_are_there()) kind = 3;
    ++seen_.losses;
    lost_ = true;
    if (kind > 2) {
      dead_nodes_.insert(cluster_->node_index(rank));
      look_back();
      return cluster_->cut_node(cluster_->node_index(rank));
    }
    gone_.insert(rank);
    process_ended_ |= kind == 1;
    cluster_->engine_of(rank).remove_client(rank + 1, kind == 1 ? engine::Loss::process : engine::Loss::host);
  }

  // Whether all will hear of the loss of one member of a team: those that join it later are not told.
  bool all_are_there() const {
    return std::all_of(teams_.begin(), teams_.end(), [](const Ours& ours) {
      for (size_t member = 0; member < ours.members.size(); ++member) {
        const auto unposted = [&](const Act& act) { return act.stages[member] == Stage::unposted; };
        if (std::all_of(ours.acts.begin(), ours.acts.end(), unposted)) return false;
      }
      return true;
    });
  }

  void look_back() {
    for (const Ours& ours : teams_) {
      for (const Act& act : ours.acts) {
        const auto has = [&](Stage stage) { return std::count(act.stages.begin(), act.stages.end(), stage) > 0; };
        const bool cut = has(Stage::posted) && has(Stage::arrived);
        if (has(Stage::told) && has(Stage::arrived)) ++seen_.told_and_untold;
        if (act.by_pairs && cut) ++seen_.pairs_cut;
        if (act.reduces && cut) ++seen_.reductions_cut;
        for (size_t member = 0; member < ours.members.size(); ++member) {
          if (is_dead(ours.members[member]) && act.stages[member] == Stage::arrived) ++seen_.arrived_at_the_dead;
        }
      }
    }
  }

  struct Where {
    Ours& ours;
    Act& act;
    uint32_t member;
    std::string text;
  };
  Where find(uint32_t rank, uint64_t context) {
    Ours& ours = teams_[context / 1000 - 1];
    const auto member =
        static_cast<uint32_t>(std::find(ours.members.begin(), ours.members.end(), rank) - ours.members.begin());
    Act& act = ours.acts[context % 1000];
    return {ours, act, member,
            "member " + std::to_string(member) + " of team " + std::to_string(ours.id) + ", operation " +
                std::to_string(context % 1000) + (act.together ? ", " + act.together->text : ", by pairs") + ": "};
  }

  void on_arrived(uint32_t rank, uint64_t context) {
    const Where its = find(rank, context);
    if (its.act.stages[its.member] != Stage::posted) note(its.text + "arrives twice, or after its end");
    if (!its.act.is_right(its.member)) note(its.text + "has arrived without its result");
    its.act.stages[its.member] = Stage::arrived;
    its.act.has_arrived[its.member] = true;
  }

  void on_finished(uint32_t rank, uint64_t context, const base::Status& status) {
    const Where its = find(rank, context);
    its.act.stages[its.member] = status.ok() ? Stage::told : Stage::failed;
    if (!status.ok()) return lost_ ? void() : note(its.text + status.text());
    if (!its.act.has_arrived[its.member]) note(its.text + "is told the end before its result is there");
    if (!its.act.is_right(its.member)) note(its.text + "wrong bytes");
    const auto& known = cluster_->lost_members(rank);
    const auto of_team = known.lower_bound({1000U + its.ours.id, 0});
    if (of_team != known.end() && of_team->first == 1000U + its.ours.id) return void(++seen_.ok_after);
    // Where a process has ended, others fail at what they have from it, and nothing is done again.
    for (uint32_t other = 0; !process_ended_ && other < its.ours.members.size(); ++other) {
      if (!its.act.waits_for(its.member, other)) continue;
      const std::string text = its.text + "is told the end, and member " + std::to_string(other);
      if (!its.act.has_arrived[other]) note(text + " has not arrived");
      if (!its.act.is_right(other)) note(text + " has wrong bytes");
    }
  }

  void check_end() {
    for (const Ours& ours : teams_) {
      for (size_t number = 0; number < ours.acts.size(); ++number) {
        for (uint32_t member = 0; member < ours.members.size(); ++member) {
          const uint32_t rank = ours.members[member];
          if (is_dead(rank) || !ours.acts[number].has_part(member)) continue;
          if (cluster_->outcome(rank, ours.id * 1000 + number)) continue;
          note(find(rank, ours.id * 1000 + number).text + "waits for ever");
        }
      }
    }
    for (uint32_t rank = 0; rank < cluster_->ranks(); ++rank) {
      if (is_dead(rank)) continue;
      if (cluster_->engine_of(rank).awaits()) note("something is still under way");
      if (!lost_ && cluster_->engine_of(rank).refused_count() > 0) note("an honest message was refused");
    }
  }

  std::mt19937_64 random_;
  Seen& seen_;
  uint32_t nodes_ = 0;
  engine::Config config_;
  std::unique_ptr<Witness> cluster_;
  std::vector<Ours> teams_;
  size_t left_ = 0;  // to be posted
  bool lost_ = false;
  bool process_ended_ = false;
  std::set<uint32_t> dead_nodes_, gone_;  // gone_: ranks, by themselves
  std::string problem_;
};

TEST(RandomArrivals, WhatIsToldHasArrivedEverywhere) {
  const char* seed_text = std::getenv("OFFPATH_TEST_SEED");
  const char* seeds_text = std::getenv("OFFPATH_TEST_SEEDS");
  const bool slow = std::getenv("OFFPATH_TEST_FABRIC") != nullptr;
  const uint64_t seeds = seed_text != nullptr    ? 1
                         : seeds_text != nullptr ? std::strtoull(seeds_text, nullptr, 0)
                         : slow                  ? 40
                                                 : 2000;
  const uint64_t first = seed_text != nullptr ? std::strtoull(seed_text, nullptr, 0) : std::random_device{}();
  Seen seen;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    const std::string problem = Crash(seed, seen).run();
    ASSERT_EQ(problem, "") << "OFFPATH_TEST_SEED=" << seed;
    ASSERT_FALSE(HasFailure()) << "OFFPATH_TEST_SEED=" << seed;
  }
  // The rare ways are gone, too.
  const std::pair<const char*, uint64_t> ways[] = {{"told to one and not to another", seen.told_and_untold},
                                                   {"arrived where it died", seen.arrived_at_the_dead},
                                                   {"cut, by pairs", seen.pairs_cut},
                                                   {"cut, a reduction", seen.reductions_cut},
                                                   {"well although a loss was known", seen.ok_after}};
  for (const auto& [way, count] : ways) {
    RecordProperty(way, std::to_string(count));
    EXPECT_TRUE(count > 0 || seeds < 1000) << way;
  }
}

}  // namespace
}  // namespace offpath::testing
