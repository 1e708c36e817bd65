// SPDX-License-Identifier: BSD-3-Clause
// What grows with the number of services, and how: messages, steps and memory of real engines. A change that lets one of them grow
// faster fails here. Time is virtual: the same on any machine.
#include "../../../bench/engine/growth.hpp"
#include "../../../bench/engine/many.hpp"

#include <gtest/gtest.h>

#include <tuple>
#include <utility>

namespace engine_bench {
namespace {

using namespace offpath;
using policy::Collective;

// Of fewer most messages leave together with others.
constexpr uint32_t kServices[] = {64, 128, 256};

struct Grown {
  Points messages, most, parts, ns;  // by services; messages of each
};

// After the same operation, which has connected those that it needs.
Grown grow(Collective kind, uint64_t bytes, offpath_algorithm_t algorithm = OFFPATH_ALGORITHM_DEFAULT,
           graph::Ends ends = graph::Ends::alone) {
  Grown grown;
  for (const uint32_t services : kServices) {
    Many many(services);
    EXPECT_TRUE(many.add_team().ok());
    model::Operation operation;
    operation.kind = kind;
    operation.algorithm = algorithm;
    operation.bytes = kind == Collective::ialltoall ? bytes * services : bytes;
    EXPECT_TRUE(many.run(operation, ends).ok());
    const auto spent = many.run(operation, ends);
    EXPECT_TRUE(spent.ok()) << spent.status().text();
    if (!spent.ok()) continue;
    grown.messages.emplace_back(services, static_cast<double>(spent->messages) / services);
    grown.most.emplace_back(services, static_cast<double>(spent->most_messages));
    grown.parts.emplace_back(services, static_cast<double>(spent->parts));
    grown.ns.emplace_back(services, spent->ns);
  }
  return grown;
}

// From 64 to 256 services log2 grows with an exponent of 0.21.
constexpr double kLog = 0.3, kLinear = 1.15;

TEST(Many, AnExponentIsThatOfAPower) {
  EXPECT_NEAR(exponent({{4, 10}, {16, 40}, {64, 160}}), 1, 1e-9);
  EXPECT_NEAR(exponent({{4, 7}, {16, 7}, {64, 7}}), 0, 1e-9);
  EXPECT_NEAR(exponent({{4, 16}, {16, 256}}), 2, 1e-9);
  EXPECT_STREQ(form_of({{4, 7}, {16, 7}, {64, 7.1}}).name, "constant");
  EXPECT_STREQ(form_of({{4, 6}, {16, 10}, {64, 14}}).name, "log");
  EXPECT_NEAR(form_of({{4, 6}, {16, 10}, {64, 14}}).slope, 2, 1e-9);
  EXPECT_STREQ(form_of({{4, 14}, {16, 26}, {64, 74}}).name, "linear");
  EXPECT_STREQ(form_of({{4, 8}, {16, 64}, {64, 384}}).name, "n log n");
  EXPECT_STREQ(form_of({{4, 16}, {16, 256}, {64, 4096}}).name, "square");
}

TEST(Many, ABarrierAndAShortAllreduceGrowWithTheLogarithm) {
  for (const auto& [kind, bytes] : {std::pair{Collective::ibarrier, 0}, {Collective::iallreduce, 8}}) {
    const Grown grown = grow(kind, static_cast<uint64_t>(bytes));
    for (const Points& points : {grown.messages, grown.most, grown.parts, grown.ns}) EXPECT_LT(exponent(points), kLog);
  }
}

TEST(Many, ALongAllreduceGrowsWithTheLogarithm) {
  for (const auto algorithm : {OFFPATH_ALGORITHM_DOUBLING, OFFPATH_ALGORITHM_DEFAULT}) {
    const Grown grown = grow(Collective::iallreduce, 1 << 20, algorithm);
    for (const Points& points : {grown.messages, grown.most, grown.parts, grown.ns}) EXPECT_LT(exponent(points), kLog);
  }
}

TEST(Many, BlocksForAllGrowWithThese) {
  for (const auto& [kind, bytes, algorithm] : {std::tuple{Collective::iallreduce, 1 << 20, OFFPATH_ALGORITHM_RING},
                                               {Collective::ialltoall, 8, OFFPATH_ALGORITHM_DEFAULT}}) {
    const Grown grown = grow(kind, static_cast<uint64_t>(bytes), algorithm);
    EXPECT_LT(exponent(grown.messages), kLinear);
    EXPECT_LT(exponent(grown.most), kLinear);
    EXPECT_LT(exponent(grown.parts), kLinear);
  }
}

TEST(Many, ArrivalsGrowWithTheLogarithm) {
  const Grown grown = grow(Collective::ibarrier, 0, OFFPATH_ALGORITHM_DEFAULT, graph::Ends::together);
  for (const Points& points : {grown.messages, grown.most, grown.ns}) EXPECT_LT(exponent(points), kLog);
}

// Of one service: without a team, for a team, and for its first operation, by which all know each other.
TEST(Many, MemoryGrowsWithTheServicesByABoundedNumberOfBytesForEach) {
  Points engines, teams, used, next;
  for (const uint32_t services : kServices) {
    uint64_t before = Many::allocated_bytes();
    const auto note = [&](Points& points) {
      const uint64_t now = Many::allocated_bytes();
      points.emplace_back(services, (static_cast<double>(now) - static_cast<double>(before)) / services);
      before = now;
    };
    model::Operation barrier;
    barrier.kind = Collective::ibarrier;
    Many many(services);
    note(engines);
    ASSERT_TRUE(many.add_team().ok());
    note(teams);
    ASSERT_TRUE(many.run(barrier, graph::Ends::together).ok());
    note(used);
    ASSERT_TRUE(many.add_team().ok());
    ASSERT_TRUE(many.run(barrier, graph::Ends::together).ok());
    note(next);
  }
  EXPECT_LT(exponent(engines), 0.05);
  // From the first to the last, for each service more.
  const auto each = [](const Points& points) {
    return (points.back().second - points.front().second) / (points.back().first - points.front().first);
  };
  EXPECT_LT(each(teams), 120);
  EXPECT_LT(each(used), 80);
  EXPECT_LT(each(next), 40);
}

}  // namespace
}  // namespace engine_bench
