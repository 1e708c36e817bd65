// SPDX-License-Identifier: BSD-3-Clause
// Broadcasts whose members were told different lengths, and different algorithms for that: everybody ends, nobody gets
// what is not his or believes that all is well where it is not. OFFPATH_TEST_SEED repeats one program.
#include "../ops/algorithms.hpp"
#include "cluster.hpp"
#include "ops/collectives/collective.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace offpath::testing {
namespace {

constexpr offpath_algorithm_t kBroadcasts[] = {OFFPATH_ALGORITHM_BINOMIAL, OFFPATH_ALGORITHM_CHAIN,
                                               OFFPATH_ALGORITHM_SCATTER_ALLGATHER};
constexpr uint8_t kUntouched = 0xEE;
constexpr uint64_t kRoom = 2000;

struct Broadcast {
  uint32_t nodes = 1, root = 0;
  ops::Tuning tuning{64, 4096, 4, 1 << 20};
  engine::Config config = Cluster::small_chunks();
  std::vector<uint64_t> lengths;                // by rank
  std::vector<offpath_algorithm_t> algorithms;  // by rank
};

class Members {
 public:
  Members(const Broadcast& wanted, uint64_t seed)
      : wanted_(wanted), size_(static_cast<uint32_t>(wanted.lengths.size())) {
    cluster_ = std::make_unique<Cluster>(wanted.nodes, size_, seed, wanted.config, std::make_shared<FarMemory>());
    std::vector<uint32_t> ranks(size_);
    std::iota(ranks.begin(), ranks.end(), 0);
    const auto team = cluster_->make_team(ranks, 1);
    std::vector<uint64_t> keys;
    for (uint32_t rank = 0; rank < size_; ++rank) keys.push_back(cluster_->node_index(rank));
    data_.assign(size_, std::vector<uint8_t>(kRoom, kUntouched));
    for (uint64_t i = 0; i < wanted.lengths[wanted.root]; ++i) data_[wanted.root][i] = sent(i);
    std::shuffle(ranks.begin(), ranks.end(), cluster_->random());
    for (const uint32_t rank : ranks) {
      ops::Collective collective;
      collective.kind = OFFPATH_BCAST;
      collective.algorithm = wanted.algorithms[rank];
      collective.root = wanted.root;
      const ops::Block block{0, 0, address_of(data_[rank].data()), wanted.lengths[rank]};
      (rank == wanted.root ? collective.send : collective.recv).push_back(block);
      const ops::Topology topology = ops::Topology::make(rank, keys);
      EXPECT_TRUE(check(collective, topology.rank, topology.size()).ok());
      cluster_->engine_of(rank).post(team[rank], 0, ops::expand(collective, topology, wanted.tuning), 0);
      for (uint64_t i = cluster_->random()() % 20; i > 0; --i) cluster_->step();
    }
    for (int looks = 0; looks < 4; ++looks) {
      cluster_->settle();
      for (uint32_t rank = 0; rank < size_; ++rank) cluster_->engine_of(rank).watch(0);
    }
    cluster_->settle();
  }

  std::optional<offpath_status_t> outcome(uint32_t rank) const { return cluster_->outcome(rank, 0); }
  // The first `bytes` bytes came, and nothing else was written.
  bool holds(uint32_t rank, uint64_t bytes) const {
    for (uint64_t i = 0; i < kRoom; ++i) {
      if (data_[rank][i] != (i < bytes ? sent(i) : kUntouched)) return false;
    }
    return true;
  }
  uint64_t came(uint32_t rank) const {
    const auto end = std::find(data_[rank].begin(), data_[rank].end(), kUntouched);
    return static_cast<uint64_t>(end - data_[rank].begin());
  }
  bool wrote_outside(uint32_t rank) const {
    const auto from = data_[rank].begin() + static_cast<int64_t>(wanted_.lengths[rank]);
    return std::any_of(from, data_[rank].end(), [](uint8_t byte) { return byte != kUntouched; });
  }
  uint64_t refused() const {
    uint64_t count = 0;
    for (uint32_t rank = 0; rank < size_; ++rank) count += cluster_->engine_of(rank).refused_count();
    return count;
  }

 private:
  static uint8_t sent(uint64_t at) { return static_cast<uint8_t>(at * 7 % 200); }
  Broadcast wanted_;
  uint32_t size_;
  std::unique_ptr<Cluster> cluster_;
  std::vector<std::vector<uint8_t>> data_;
};

class Random {
 public:
  explicit Random(uint64_t seed) : random_(seed) {}
  uint64_t operator()(uint64_t below) { return random_() % below; }
  // Around the borders of segments, where nothing shows but the number of segments.
  uint64_t length() {
    const uint64_t segments = (*this)(8);
    return (*this)(2) == 0 ? segments * 64 : std::min<uint64_t>(kRoom, segments * 64 + (*this)(64));
  }
  offpath_algorithm_t algorithm() { return kBroadcasts[(*this)(std::size(kBroadcasts))]; }
  Broadcast broadcast() {
    Broadcast out;
    const uint64_t ranks = 2 + (*this)(8);
    out.nodes = 1 + static_cast<uint32_t>((*this)(std::min<uint64_t>(ranks, 6)));
    out.root = static_cast<uint32_t>((*this)(ranks));
    out.tuning.window = 2 + static_cast<uint32_t>((*this)(3));
    out.tuning.segments_max = (*this)(4) == 0 ? 3 : 4096;
    out.config.pushed_bytes = (*this)(2) == 0 ? 0 : 40 + (*this)(100);
    out.lengths.assign(ranks, length());
    out.algorithms.assign(ranks, algorithm());
    return out;
  }

 private:
  std::mt19937_64 random_;
};

template <typename Check>
void for_seeds(const Check& check) {
  const char* seed_text = std::getenv("OFFPATH_TEST_SEED");
  const uint64_t first = seed_text != nullptr ? std::strtoull(seed_text, nullptr, 0) : std::random_device{}();
  for (uint64_t seed = first; seed < first + (seed_text != nullptr ? 1 : 300); ++seed) {
    SCOPED_TRACE("OFFPATH_TEST_SEED=" + std::to_string(seed));
    check(seed);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Lengths, ThatAllDiffer) {
  for_seeds([](uint64_t seed) {
    Random random(seed);
    Broadcast wanted = random.broadcast();
    for (uint64_t& length : wanted.lengths) length = random(2) == 0 ? length : random.length();
    if (random(3) == 0) {
      for (offpath_algorithm_t& algorithm : wanted.algorithms) algorithm = random.algorithm();
    }
    const Members members(wanted, seed);
    const uint64_t sent = wanted.lengths[wanted.root];
    EXPECT_EQ(members.refused(), 0U) << "of honest messages";
    // Who states 0 takes no part and is not told, as it is natively; what it should have passed on is lacking elsewhere.
    bool lacks = false, truncated = std::count(wanted.lengths.begin(), wanted.lengths.end(), 0) > 0;
    for (uint32_t rank = 0; rank < wanted.lengths.size(); ++rank) {
      const uint64_t length = wanted.lengths[rank];
      const auto outcome = members.outcome(rank);
      SCOPED_TRACE("rank " + std::to_string(rank) + " of length " + std::to_string(length) + ", sent " +
                   std::to_string(sent));
      ASSERT_TRUE(outcome.has_value()) << "waits for ever";
      EXPECT_TRUE(rank == wanted.root || !members.wrote_outside(rank));
      if (rank == wanted.root || length == 0) {
        EXPECT_EQ(*outcome, OFFPATH_OK);
      } else if (*outcome == OFFPATH_OK) {
        EXPECT_EQ(length, sent);
        EXPECT_TRUE(members.holds(rank, sent));
      } else if (*outcome == OFFPATH_ERR_SHORT) {
        const uint64_t came = members.came(rank);
        EXPECT_TRUE(came > 0 && came < length && members.holds(rank, came));
        lacks |= came != sent;
      } else {
        EXPECT_EQ(*outcome, OFFPATH_ERR_TRUNCATED);
        truncated = true;
      }
    }
    EXPECT_TRUE(truncated || !lacks) << "what the root has sent was lost on the way, and nobody says so";
  });
}

// By multicast the nodes find out before anything is sent, and all are told.
TEST(Lengths, ThatDifferEndAMulticastForAll) {
  for_seeds([](uint64_t seed) {
    Random random(seed);
    Broadcast wanted = random.broadcast();
    for (uint64_t& length : wanted.lengths) length = random(3) != 0 ? length : random.length();
    wanted.algorithms.assign(wanted.lengths.size(), OFFPATH_ALGORITHM_MULTICAST);
    const Members members(wanted, seed);
    const uint64_t sent = wanted.lengths[wanted.root];
    for (uint32_t rank = 0; rank < wanted.lengths.size(); ++rank) {
      ASSERT_TRUE(members.outcome(rank).has_value()) << "waits for ever";
      if (rank == wanted.root) continue;
      EXPECT_FALSE(members.wrote_outside(rank));
      const bool well = *members.outcome(rank) == OFFPATH_OK && wanted.lengths[rank] > 0;
      EXPECT_TRUE(!well || (wanted.lengths[rank] == sent && members.holds(rank, sent))) << rank;
    }
  });
}

TEST(Lengths, OfTheRootThatIsLongerTruncates) {
  for_seeds([](uint64_t seed) {
    Random random(seed);
    Broadcast wanted = random.broadcast();
    for (uint64_t& length : wanted.lengths) length = std::max<uint64_t>(length, 1);
    wanted.lengths[wanted.root] += 1 + random.length() / 2;
    const Members members(wanted, seed);
    for (uint32_t rank = 0; rank < wanted.lengths.size(); ++rank) {
      EXPECT_EQ(members.outcome(rank), rank == wanted.root ? OFFPATH_OK : OFFPATH_ERR_TRUNCATED) << "rank " << rank;
    }
  });
}

TEST(Lengths, OfTheRootThatIsShorterFallsShort) {
  for_seeds([](uint64_t seed) {
    Random random(seed);
    Broadcast wanted = random.broadcast();
    wanted.tuning.segments_max = 4096;
    wanted.algorithms.assign(wanted.lengths.size(), kBroadcasts[random(2)]);
    const uint64_t sent = std::max<uint64_t>(wanted.lengths[wanted.root], 1);
    wanted.lengths.assign(wanted.lengths.size(), sent + 1 + random.length());
    wanted.lengths[wanted.root] = sent;
    const Members members(wanted, seed);
    for (uint32_t rank = 0; rank < wanted.lengths.size(); ++rank) {
      if (rank == wanted.root) continue;
      EXPECT_EQ(members.outcome(rank), OFFPATH_ERR_SHORT) << "rank " << rank;
      EXPECT_TRUE(members.holds(rank, sent)) << "rank " << rank;
    }
  });
}

// The mechanism by itself: who exports what nobody asks for ends once nobody can ask any more, and not before.
TEST(Lengths, WhoWaitsToBeAskedIsToldWhenNobodyWill) {
  for (const uint32_t nodes : {1U, 2U}) {
    Cluster cluster(nodes, 2, 1);
    const auto team = cluster.make_team({0, 1}, 1);
    std::vector<uint8_t> from(300, 7), to(300);
    graph::Graph zero, one;
    zero.offer(1, 0, graph::client_place(address_of(from.data())), from.size());
    one.pull(0, 1, graph::client_place(address_of(to.data())), to.size());
    const uint32_t late = one.pull(0, 2, graph::client_place(address_of(to.data())), to.size());
    one.order(0, late);
    const auto look = [&] {
      cluster.settle();
      cluster.engine_of(0).watch(0);
      cluster.settle();
    };
    cluster.engine_of(0).post(team[0], 0, std::move(zero), 0);
    look();
    EXPECT_FALSE(cluster.outcome(0, 0).has_value()) << "it may be asked yet";
    cluster.engine_of(1).post(team[1], 0, std::move(one), 0);
    look();
    EXPECT_EQ(cluster.outcome(0, 0), OFFPATH_OK);
    EXPECT_EQ(cluster.outcome(1, 0), OFFPATH_OK);
  }
}

// To say that it may ask yet is not to have begun: who has not posted an operation has no part in what is lost with it.
TEST(Lengths, WhoWasAskedHasNotBegun) {
  Cluster cluster(2, 2, 1);
  const auto team = cluster.make_team({0, 1}, 1);
  std::vector<uint8_t> from(300, 7);
  graph::Graph zero;
  zero.offer(1, 0, graph::client_place(address_of(from.data())), from.size());
  cluster.engine_of(0).post(team[0], 0, std::move(zero), 0);
  for (int looks = 0; looks < 3; ++looks) {
    cluster.settle();
    cluster.engine_of(0).watch(0);
  }
  cluster.settle();
  cluster.cut_node(1);
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, 0), OFFPATH_ERR_NOT_STARTED);
}

}  // namespace
}  // namespace offpath::testing
