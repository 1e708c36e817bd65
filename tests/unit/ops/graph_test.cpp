// SPDX-License-Identifier: BSD-3-Clause
// What the graphs must be besides right: who is who in a topology, bytes on the wire, bounds, defaults.
#include "algorithms.hpp"
#include "team.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace offpath::testing {
namespace {

using ops::Collective;
using ops::Topology;

std::vector<uint64_t> even_nodes(uint32_t nodes, uint32_t members) {
  std::vector<uint64_t> keys;
  for (uint32_t i = 0; i < nodes * members; ++i) keys.push_back(i / members);
  return keys;
}

// Of a service's clients each has its own, and of each of their teams.
TEST(Topology, WhatIsLongIsThereOnce) {
  const Topology one = Topology::make(0, {70, 9, 70}), other = Topology::make(2, {5, 6, 5});
  EXPECT_EQ(one.nodes_there, other.nodes_there);
  EXPECT_EQ(other.rank, 2U);
  EXPECT_NE(Topology::make(0, {70, 9, 9}).nodes_there, one.nodes_there);
  EXPECT_EQ(Topology::make(1, {1, 2, 2}).members(1), (std::vector<uint32_t>{1, 2}));
}

TEST(Topology, NumbersNodesByTheirFirstRank) {
  const Topology topology = Topology::make(3, {70, 9, 70, 5, 9});
  EXPECT_EQ(topology.rank, 3U);
  EXPECT_EQ(topology.size(), 5U);
  EXPECT_EQ(topology.nodes_there->node_of, (std::vector<uint32_t>{0, 1, 0, 2, 1}));
  EXPECT_EQ(topology.nodes_there->members, (std::vector<std::vector<uint32_t>>{{0, 2}, {1, 4}, {3}}));
  EXPECT_EQ(topology.node(), 2U);
  EXPECT_TRUE(topology.leads());
  EXPECT_EQ(topology.leader(1), 1U);
  EXPECT_FALSE(Topology::make(4, {70, 9, 70, 5, 9}).leads());
}

// ---- bytes on the wire -----------------------------------------------------------------------------------------

struct Wire {
  std::vector<uint64_t> into;  // by node
  uint64_t all() const { return std::accumulate(into.begin(), into.end(), uint64_t{0}); }
};

Wire wire_of(const Case& c) {
  Team team(c, 1);
  EXPECT_EQ(team.run(2), "") << c.text();
  Wire wire;
  for (uint32_t node = 0; node < team.machines[0].topology.nodes(); ++node) {
    wire.into.push_back(team.wire_bytes_into(node));
  }
  return wire;
}

int64_t pulls_of(const Case& c, uint32_t member) {
  Team team(c, 1);
  const graph::Graph graph = ops::expand(team.collectives[member], ops::Topology::make(member, c.node_keys), c.tuning);
  return std::ranges::count(graph.steps, graph::StepKind::pull, &graph::Step::kind);
}

Case case_of(offpath_collective_kind_t kind, offpath_algorithm_t algorithm, std::vector<uint64_t> nodes,
             uint64_t bytes) {
  Case c;
  c.kind = kind;
  c.algorithm = algorithm;
  c.node_keys = std::move(nodes);
  c.bytes = bytes;
  return c;
}

TEST(Wire, BcastBringsEachByteIntoEachNodeOnce) {
  for (const auto algorithm :
       {OFFPATH_ALGORITHM_BINOMIAL, OFFPATH_ALGORITHM_CHAIN, OFFPATH_ALGORITHM_SCATTER_ALLGATHER}) {
    Case c = case_of(OFFPATH_BCAST, algorithm, {0, 0, 1, 2, 1, 1, 3, 4, 4}, 1001);
    c.root = 2;
    EXPECT_EQ(wire_of(c).into, (std::vector<uint64_t>{1001, 0, 1001, 1001, 1001}));
  }
}

TEST(Wire, AllgatherBringsEachBlockIntoEachNodeOnce) {
  for (const auto algorithm : {OFFPATH_ALGORITHM_DIRECT, OFFPATH_ALGORITHM_RING}) {
    const Case c = case_of(OFFPATH_ALLGATHER, algorithm, {0, 0, 1, 2, 1, 1}, 200);
    EXPECT_EQ(wire_of(c).into, (std::vector<uint64_t>{800, 600, 1000}));
  }
}

TEST(Wire, AllreduceOfLongVectorsMovesTwiceTheVectorLessWhatStays) {
  for (const auto algorithm : {OFFPATH_ALGORITHM_RABENSEIFNER, OFFPATH_ALGORITHM_RING}) {
    const Case c = case_of(OFFPATH_ALLREDUCE, algorithm, {0, 1, 1, 2, 3, 3, 3, 1}, 4 * 640);
    EXPECT_EQ(wire_of(c).into, std::vector<uint64_t>(4, 2 * 3 * 640));
  }
}

// With as many nodes as a power of two, and with two of five that go in a pair.
TEST(Wire, AllreduceOfShortPartsMovesHalvesInTwiceAsManyRoundsAsNodesHaveDigits) {
  Case c = case_of(OFFPATH_ALLREDUCE, OFFPATH_ALGORITHM_RABENSEIFNER, {0, 1, 1, 2, 3, 3, 3, 1}, 4 * 640);
  c.tuning.segment_bytes = 4 * 640;
  EXPECT_EQ(pulls_of(c, 0), 2 * 3) << "so few exchange with each other";
  c.tuning.pairwise_nodes = 1;
  EXPECT_EQ(wire_of(c).into, std::vector<uint64_t>(4, 2 * 3 * 640));
  EXPECT_EQ(pulls_of(c, 0), 2 * 2);
  c.node_keys = {0, 1, 2, 3, 4};
  EXPECT_EQ(pulls_of(c, 0), 1) << "rests";
  EXPECT_EQ(pulls_of(c, 1), 1 + 2 * 2);
  EXPECT_EQ(pulls_of(c, 4), 2 * 2);
}

TEST(Wire, AllreduceByDoublingMovesTheVectorOncePerRound) {
  const Case c = case_of(OFFPATH_ALLREDUCE, OFFPATH_ALGORITHM_DOUBLING, {0, 1, 1, 2, 3, 3}, 128);
  EXPECT_EQ(wire_of(c).into, std::vector<uint64_t>(4, 2 * 128));
}

TEST(Wire, ReduceMovesOneContributionPerNode) {
  Case c = case_of(OFFPATH_REDUCE, OFFPATH_ALGORITHM_BINOMIAL, {0, 1, 1, 2, 3, 4, 4}, 640);
  c.root = 4;
  EXPECT_EQ(wire_of(c).all(), 4U * 640);
  c.algorithm = OFFPATH_ALGORITHM_RABENSEIFNER;
  EXPECT_EQ(wire_of(c).into, (std::vector<uint64_t>{512, 512, 512, 1024, 512}));
}

TEST(Wire, ReduceScatterMovesOneContributionPerNode) {
  const Case c = case_of(OFFPATH_REDUCE_SCATTER, OFFPATH_ALGORITHM_PAIRWISE, {0, 1, 1, 2, 1}, 80);
  EXPECT_EQ(wire_of(c).into, (std::vector<uint64_t>{2 * 80, 2 * 3 * 80, 2 * 80}));
}

TEST(Wire, ScanChainCrossesOncePerChangeOfNode) {
  for (const auto kind : {OFFPATH_SCAN, OFFPATH_EXSCAN}) {
    const Case c = case_of(kind, OFFPATH_ALGORITHM_CHAIN, {0, 0, 1, 1, 0, 2}, 240);
    EXPECT_EQ(wire_of(c).into, (std::vector<uint64_t>{240, 240, 240}));
  }
}

// ---- barrier ---------------------------------------------------------------------------------------------------

TEST(Barrier, NobodyLeavesBeforeAllHaveCome) {
  for (const std::vector<uint64_t>& nodes : {even_nodes(1, 4), even_nodes(5, 1), even_nodes(3, 3), {0, 1, 1, 0, 2}}) {
    for (uint32_t absent = 0; absent < nodes.size(); ++absent) {
      std::vector<Machine> machines(nodes.size());
      for (uint32_t member = 0; member < nodes.size(); ++member) {
        Collective barrier;
        barrier.kind = OFFPATH_BARRIER;
        machines[member].topology = Topology::make(member, nodes);
        machines[member].graph = ops::expand(barrier, machines[member].topology);
      }
      Interpreter interpreter(machines, add, absent);
      EXPECT_NE(interpreter.run(absent), "");
      for (uint32_t member = 0; member < nodes.size(); ++member) {
        EXPECT_FALSE(interpreter.finished(member)) << member << " did not wait for " << absent;
      }
    }
  }
}

// ---- bounds ----------------------------------------------------------------------------------------------------

// One member's arguments, without memory behind them.
Collective arguments(const Algorithm& algorithm, const Topology& topology, uint64_t bytes) {
  const auto block = [&](uint64_t address, uint64_t length) { return ops::Block{0, 0, address, length}; };
  const uint64_t share = bytes / topology.size() / 64 * 64;
  Collective c;
  c.kind = algorithm.kind;
  c.algorithm = algorithm.algorithm;
  c.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_U64};
  const uint64_t recv = uint64_t{1} << 40;
  switch (algorithm.kind) {
    case OFFPATH_BARRIER:
      break;
    case OFFPATH_EXCHANGE:
      for (uint32_t peer = 0; peer < topology.size(); ++peer) {
        c.send.push_back({peer, 0, 4096 + peer * share, share});
        c.recv.push_back({peer, 0, recv + peer * share, share});
      }
      break;
    case OFFPATH_BCAST:
      (topology.rank == 0 ? c.send : c.recv).push_back(block(4096, bytes));
      break;
    case OFFPATH_ALLGATHER:
      c.send.push_back(block(4096, share));
      for (uint32_t peer = 0; peer < topology.size(); ++peer) c.recv.push_back(block(recv + peer * share, share));
      break;
    case OFFPATH_REDUCE_SCATTER:
      c.counts_bytes.assign(topology.size(), share);
      c.send.push_back(block(4096, share * topology.size()));
      c.recv.push_back(block(recv, share));
      break;
    default:
      c.send.push_back(block(4096, bytes));
      if (algorithm.kind != OFFPATH_REDUCE || topology.rank == 0) c.recv.push_back(block(recv, bytes));
  }
  return c;
}

class EachGraph : public ::testing::TestWithParam<Algorithm> {};

TEST_P(EachGraph, StaysSmallForHugeVectors) {
  constexpr uint64_t kMiB = 1 << 20;
  for (const auto& [nodes, members] : {std::pair(8U, 8U), std::pair(64U, 1U), std::pair(2U, 1U), std::pair(1U, 8U)}) {
    for (const uint32_t rank : {0U, 1U, nodes * members - 1}) {
      const Topology topology = Topology::make(rank, even_nodes(nodes, members));
      for (const auto& [bytes, scratch] : {std::pair(64 * kMiB, 32 * kMiB), std::pair(3072 * kMiB, 128 * kMiB)}) {
        const Collective c = arguments(GetParam(), topology, bytes);
        const base::Status status = check(c, topology.rank, topology.size());
        ASSERT_TRUE(status.ok()) << status.text();
        const graph::Graph graph = ops::expand(c, topology);
        EXPECT_LE(graph.steps.size(), 100000U) << nodes << " x " << members;
        EXPECT_LE(graph.exports.size(), 100000U) << nodes << " x " << members;
        EXPECT_LE(graph.scratch_bytes, scratch) << nodes << " x " << members;
      }
    }
  }
}

TEST_P(EachGraph, IsEmptyForNoBytesAndForNobodyElse) {
  if (GetParam().kind == OFFPATH_BARRIER) return;
  const Topology topology = Topology::make(1, even_nodes(2, 2));
  const graph::Graph nothing = ops::expand(arguments(GetParam(), topology, 0), topology);
  // By multicast who states nothing is told by those who state something that they disagree.
  const bool agrees_first = GetParam().algorithm == OFFPATH_ALGORITHM_MULTICAST;
  EXPECT_TRUE(agrees_first || (nothing.steps.empty() && nothing.exports.empty()));
  const Topology alone = Topology::make(0, {7});
  const graph::Graph copies = ops::expand(arguments(GetParam(), alone, 4096), alone);
  EXPECT_TRUE(copies.exports.empty());
  EXPECT_EQ(copies.scratch_bytes, 0U);
  for (const graph::Step& step : copies.steps) EXPECT_EQ(step.kind, graph::StepKind::copy);
  EXPECT_EQ(copies.steps.size(), GetParam().kind == OFFPATH_BCAST || GetParam().kind == OFFPATH_EXSCAN ? 0U : 1U);
}

// One member per node: what it contributes is taken from where it lies, and results are written where they belong.
TEST_P(EachGraph, CopiesNothingWhereAMemberHasItsNodeForItself) {
  const bool prefixes = GetParam().kind == OFFPATH_SCAN || GetParam().kind == OFFPATH_EXSCAN;
  if (prefixes || GetParam().kind == OFFPATH_EXCHANGE) return;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    const Topology topology = Topology::make(rank, even_nodes(4, 1));
    Collective c = arguments(GetParam(), topology, 1 << 20);
    if (c.kind == OFFPATH_ALLGATHER) c.recv[rank].address = c.send[0].address, c.recv[rank].layout = c.send[0].layout;
    const graph::Graph graph = ops::expand(c, topology);
    for (const graph::Step& step : graph.steps) EXPECT_FALSE(step.kind == graph::StepKind::copy && step.bytes > 0);
    if (c.kind < OFFPATH_REDUCE) {
      EXPECT_EQ(graph.scratch_bytes, 0U);
    }
  }
}

TEST(Segments, AreCutOnlyWhereSomebodyPassesThemOn) {
  const auto steps = [](offpath_collective_kind_t kind, offpath_algorithm_t algorithm, uint32_t nodes,
                        uint32_t members) {
    const Topology topology = Topology::make(nodes * members - 1, even_nodes(nodes, members));
    return ops::expand(arguments({kind, algorithm, ""}, topology, 64 << 20), topology).steps.size();
  };
  EXPECT_EQ(steps(OFFPATH_BCAST, OFFPATH_ALGORITHM_CHAIN, 2, 1), 1U);
  EXPECT_EQ(steps(OFFPATH_BCAST, OFFPATH_ALGORITHM_CHAIN, 1, 4), 1U);
  EXPECT_EQ(steps(OFFPATH_BCAST, OFFPATH_ALGORITHM_CHAIN, 3, 1), 586U);  // 64 MiB / 112 KiB
  EXPECT_EQ(steps(OFFPATH_BCAST, OFFPATH_ALGORITHM_CHAIN, 2, 2), 586U);
  EXPECT_EQ(steps(OFFPATH_ALLGATHER, OFFPATH_ALGORITHM_DIRECT, 8, 1), 8U);  // 7 pulls and the own copy
  EXPECT_GT(steps(OFFPATH_ALLGATHER, OFFPATH_ALGORITHM_RING, 8, 1), 500U);
}

INSTANTIATE_TEST_SUITE_P(Ops, EachGraph, ::testing::ValuesIn(kAlgorithms), name_of);

// ---- defaults --------------------------------------------------------------------------------------------------

offpath_algorithm_t resolved(offpath_collective_kind_t kind, offpath_algorithm_t named, uint64_t bytes) {
  const Topology topology = Topology::make(0, even_nodes(4, 2));
  return ops::resolve_algorithm(arguments({kind, named, ""}, topology, bytes), topology);
}

TEST(Resolve, GoesByLengthUnlessTheKindKnowsTheName) {
  constexpr auto kDefault = OFFPATH_ALGORITHM_DEFAULT;
  EXPECT_EQ(resolved(OFFPATH_BCAST, kDefault, 64), OFFPATH_ALGORITHM_BINOMIAL);
  EXPECT_EQ(resolved(OFFPATH_BCAST, kDefault, 1 << 24), OFFPATH_ALGORITHM_CHAIN);
  EXPECT_EQ(resolved(OFFPATH_REDUCE, kDefault, 64), OFFPATH_ALGORITHM_BINOMIAL);
  EXPECT_EQ(resolved(OFFPATH_REDUCE, kDefault, 1 << 24), OFFPATH_ALGORITHM_RABENSEIFNER);
  EXPECT_EQ(resolved(OFFPATH_ALLREDUCE, kDefault, 64), OFFPATH_ALGORITHM_DOUBLING);
  EXPECT_EQ(resolved(OFFPATH_ALLREDUCE, kDefault, 1 << 24), OFFPATH_ALGORITHM_RABENSEIFNER);
  EXPECT_EQ(resolved(OFFPATH_SCAN, kDefault, 64), OFFPATH_ALGORITHM_DOUBLING);
  EXPECT_EQ(resolved(OFFPATH_EXSCAN, kDefault, 1 << 24), OFFPATH_ALGORITHM_CHAIN);
  EXPECT_EQ(resolved(OFFPATH_ALLGATHER, kDefault, 1 << 24), OFFPATH_ALGORITHM_DIRECT);
  EXPECT_EQ(resolved(OFFPATH_BARRIER, kDefault, 0), OFFPATH_ALGORITHM_DISSEMINATION);
  EXPECT_EQ(resolved(OFFPATH_ALLREDUCE, OFFPATH_ALGORITHM_RING, 64), OFFPATH_ALGORITHM_RING);
  EXPECT_EQ(resolved(OFFPATH_ALLREDUCE, OFFPATH_ALGORITHM_CHAIN, 64), OFFPATH_ALGORITHM_DOUBLING);
  EXPECT_EQ(resolved(OFFPATH_BCAST, static_cast<offpath_algorithm_t>(15), 64), OFFPATH_ALGORITHM_BINOMIAL);
}

}  // namespace
}  // namespace offpath::testing
