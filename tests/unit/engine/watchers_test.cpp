// SPDX-License-Identifier: BSD-3-Clause
// Services that die among many, in virtual time: all that are left hear of each, though few are connected to it, and nobody waits for
// ever. No timer helps: nothing is asked for a sign of life here. OFFPATH_TEST_SEED repeats one program; OFFPATH_TEST_SEEDS asks
// for more.
#include "../../../bench/engine/growth.hpp"
#include "../../../bench/engine/many.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>

namespace engine_bench {
namespace {

using namespace offpath;
using graph::Ends;
using policy::Collective;

model::Operation operation_of(Collective kind, uint64_t bytes = 0) {
  model::Operation operation;
  operation.kind = kind;
  operation.bytes = bytes;
  return operation;
}

std::unique_ptr<Many> mortals(uint32_t services) {
  auto many = std::make_unique<Many>(services);
  many->be_mortal();
  EXPECT_TRUE(many->add_team().ok());
  return many;
}

// One team whose services die at random moments: before its first operation, in it, or between it and the next one.
class Deaths {
 public:
  explicit Deaths(uint64_t seed) : random_(seed) {
    services_ = static_cast<uint32_t>(std::exp2(2 + static_cast<double>(random_() % 50) / 10));
    if (random_() % 40 == 0) services_ = 512;
    many_ = mortals(services_);
    if (random_() % 2 == 0) many_->expect_team();
  }

  // What was wrong first.
  std::string run() {
    if (random_() % 2 == 0) act({});
    std::vector<Many::Death> deaths;
    const double at_once = random_() % 2 == 0 ? span_ns_ * part() * static_cast<double>(random_() % 2) : -1;
    for (const uint32_t service : drawn()) {
      dead_.insert(service);
      deaths.push_back({service, at_once >= 0 ? at_once : span_ns_ * part()});
    }
    act(deaths);
    check_losses();
    act({});  // the next one is refused, by all
    for (uint32_t member = 0; member < services_; ++member) {
      if (!dead_.contains(member) && many_->fate(member).status == OFFPATH_OK) note(member, "begins another operation");
    }
    return problem_;
  }

 private:
  double part() { return static_cast<double>(random_() % 1000) / 1000; }

  // Some, a row of neighbours, or all but a few, which then may know only dead ones.
  std::vector<uint32_t> drawn() {
    std::vector<uint32_t> all(services_);
    std::iota(all.begin(), all.end(), 0);
    std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(random_() % services_), all.end());
    const uint64_t kind = random_() % 4;
    if (kind != 0) std::shuffle(all.begin(), all.end(), random_);
    const uint64_t most = services_ - 1;
    all.resize(kind == 1   ? std::min(1 + random_() % 3, most)
               : kind == 2 ? most - random_() % std::min<uint64_t>(8, most)
                           : 1 + random_() % most);
    return all;
  }

  void act(const std::vector<Many::Death>& deaths) {
    model::Operation operation = operation_of(Collective::ibarrier);
    if (random_() % 3 == 0) operation = operation_of(Collective::iallreduce, random_() % 2 == 0 ? 8 : 200'000);
    if (random_() % 6 == 0 && services_ <= 64) operation = operation_of(Collective::ialltoall, 8 * services_);
    span_ns_ = random_() % 3 == 0 ? 1e6 : 1e5;
    std::vector<double> begins;
    const double late = random_() % 2 == 0 ? span_ns_ : 1000;
    for (uint32_t member = 0; member < services_; ++member) begins.push_back(late * part());
    const auto spent = many_->run(operation, random_() % 2 == 0 ? Ends::together : Ends::alone, begins, deaths);
    if (!spent.ok()) problem_ = spent.status().text();
    for (uint32_t member = 0; member < services_; ++member) {
      if (!dead_.contains(member) && !many_->fate(member).status) note(member, "waits for ever");
      if (dead_.empty() && many_->fate(member).status != OFFPATH_OK) note(member, "fails with nobody lost");
    }
  }

  void check_losses() {
    for (uint32_t member = 0; member < services_; ++member) {
      if (!dead_.contains(member) && many_->fate(member).lost != dead_)
        note(member, "knows of " + std::to_string(many_->fate(member).lost.size()) + " of " +
                         std::to_string(dead_.size()) + " losses");
    }
  }

  void note(uint32_t member, const std::string& what) {
    if (problem_.empty())
      problem_ = "of " + std::to_string(services_) + " member " + std::to_string(member) + " " + what;
  }

  std::mt19937_64 random_;
  uint32_t services_ = 0;
  double span_ns_ = 1e5;
  std::unique_ptr<Many> many_;
  std::set<uint32_t> dead_;
  std::string problem_;
};

TEST(Watchers, AllHearOfEachDeathAndNobodyWaitsForEver) {
  const char* seed_text = std::getenv("OFFPATH_TEST_SEED");
  const char* seeds_text = std::getenv("OFFPATH_TEST_SEEDS");
  const uint64_t seeds = seed_text != nullptr ? 1 : seeds_text != nullptr ? std::strtoull(seeds_text, nullptr, 0) : 40;
  const uint64_t first = seed_text != nullptr ? std::strtoull(seed_text, nullptr, 0) : std::random_device{}();
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    const std::string problem = Deaths(seed).run();
    ASSERT_EQ(problem, "") << "OFFPATH_TEST_SEED=" << seed;
  }
}

TEST(Watchers, ConnectionsGrowWithTheLogarithm) {
  Points points;
  for (const uint32_t services : {64U, 128U, 256U, 512U}) {
    const auto many = mortals(services);
    ASSERT_TRUE(many->run(operation_of(Collective::ibarrier), Ends::together).ok());
    size_t most = 0;
    for (uint32_t member = 0; member < services; ++member) most = std::max(most, many->connections(member));
    points.emplace_back(services, static_cast<double>(most));
  }
  EXPECT_LT(exponent(points), 0.35);
}

// While nobody waits for anything.
TEST(Watchers, ADeathIsToldInATimeThatGrowsWithTheLogarithm) {
  Points ns, messages;
  for (const uint32_t services : {64U, 128U, 256U, 512U}) {
    const auto many = mortals(services);
    ASSERT_TRUE(many->run(operation_of(Collective::ibarrier), Ends::together).ok());
    const uint32_t dead = services / 3;
    const double died_ns = many->now_ns();
    const auto spent =
        many->run(operation_of(Collective::ibarrier), Ends::alone, std::vector<double>(services, 1e9), {{dead, 0}});
    ASSERT_TRUE(spent.ok());
    double last_ns = 0;
    for (uint32_t member = 0; member < services; ++member) {
      if (member == dead) continue;
      EXPECT_EQ(many->fate(member).lost, std::set<uint32_t>{dead});
      last_ns = std::max(last_ns, many->fate(member).told_ns - died_ns);
    }
    EXPECT_LT(last_ns, 1e9);
    ns.emplace_back(services, last_ns);
    messages.emplace_back(services, static_cast<double>(spent->messages) / services);
  }
  EXPECT_LT(exponent(ns), 0.35);
  EXPECT_LT(exponent(messages), 0.35);
}

}  // namespace
}  // namespace engine_bench
