// SPDX-License-Identifier: BSD-3-Clause
// Multicasts beside other operations, of the same services, which have few buffers and sleep when they think that nothing will
// happen. OFFPATH_TEST_ROUNDS asks for more programs, OFFPATH_TEST_SEED repeats one.
#include "sleepers.hpp"

namespace offpath::testing {
namespace {

uint64_t number_in(const char* variable, uint64_t otherwise) {
  const char* const text = getenv(variable);
  return text == nullptr ? otherwise : strtoull(text, nullptr, 0);
}

fabric::GroupFaults random_faults(std::mt19937_64& random) {
  return drawn_faults(random, {0, 0, 0, 0.02, 0.2, 1}, 5, 6);
}

void run_program(uint64_t seed) {
  std::mt19937_64 random(seed);
  engine::Config config = Cluster::small_chunks();
  config.pool_chunks = 2 + static_cast<uint32_t>(random() % 5);
  config.multicast_chains = static_cast<uint32_t>(random() % 4);
  config.multicast_rate = random() % 3 == 0 ? 0 : 1'000'000;
  if (random() % 2 == 0) config.pushed_bytes = 64;
  std::vector<Sleepers::Loop> loops;
  const uint64_t count = 4 + random() % 20;
  for (uint64_t teams = 1 + random() % 3; teams > 0; --teams) {
    loops.push_back(
        {OFFPATH_ALLGATHER, OFFPATH_ALGORITHM_MULTICAST, random() % 6 == 0 ? 0 : 1 + random() % 3000, count});
    if (random() % 3 != 0) {
      loops.push_back({OFFPATH_EXCHANGE, OFFPATH_ALGORITHM_DEFAULT, 1 + random() % 1500, 1 + random() % 30});
    }
  }
  const uint32_t ranks = Sleepers::kNodes * (1 + static_cast<uint32_t>(random() % 3));
  Sleepers programs(seed, config, loops, ranks, 1 + static_cast<uint32_t>(random() % 2));
  if (random() % 8 != 0) programs.offer_groups(random_faults(random));
  const bool end = programs.run([&] {
    if (programs.groups() != nullptr && random() % 4 == 0) programs.groups()->set_faults(random_faults(random));
  });
  EXPECT_TRUE(end) << "everybody sleeps for ever:\n" << programs.text();
  EXPECT_TRUE(programs.all_right());
}

TEST(MulticastsBeside, NobodySleepsForEver) {
  if (ports_are_late() || getenv("OFFPATH_TEST_FABRIC") != nullptr) GTEST_SKIP() << "time is not the test's there";
  const uint64_t first = number_in("OFFPATH_TEST_SEED", std::random_device{}());
  const uint64_t rounds = getenv("OFFPATH_TEST_SEED") != nullptr ? 1 : number_in("OFFPATH_TEST_ROUNDS", 30);
  for (uint64_t seed = first; seed < first + rounds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("OFFPATH_TEST_SEED=" + std::to_string(seed));
    run_program(seed);
  }
}

// It has no queue that slower senders would spare.
TEST(MulticastsBeside, ABadLinkMakesNobodySlower) {
  if (ports_are_late() || getenv("OFFPATH_TEST_FABRIC") != nullptr) GTEST_SKIP() << "time is not the test's there";
  engine::Config config = Cluster::small_chunks();
  config.multicast_rate = 1'000'000;
  Sleepers programs(1, config, {{OFFPATH_ALLGATHER, OFFPATH_ALGORITHM_MULTICAST, 2000, 40}}, Sleepers::kNodes, 1);
  programs.offer_groups({});
  programs.run([&] { programs.groups()->set_faults({.lost = 0.05}); });
  const double link = 1e-3, senders = 3;
  EXPECT_GT(programs.last_group().rate(), 0.7 * link / senders);
}

}  // namespace
}  // namespace offpath::testing
