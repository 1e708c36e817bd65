// SPDX-License-Identifier: BSD-3-Clause
// Graphs that are kept for collectives that come again: they are what they would be, and few.
#include "ops/collectives/kept_graphs.hpp"

#include "team.hpp"

#include <gtest/gtest.h>

namespace offpath::testing {
namespace {

using collective::OwnBlocks;
using ops::KeptGraphs;

bool equal(const graph::Graph& a, const graph::Graph& b) {
  const auto step = [](const graph::Step& s) {
    return std::tie(s.kind, s.peer, s.tag, s.waits, s.source, s.operand, s.target, s.bytes, s.room, s.next);
  };
  const auto block = [](const graph::Export& e) {
    return std::tie(e.peer, e.tag, e.place, e.bytes, e.after, e.rest, e.next);
  };
  const auto alike = [](const auto& x, const auto& y, auto of) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](auto& l, auto& r) { return of(l) == of(r); });
  };
  return alike(a.steps, b.steps, step) && alike(a.exports, b.exports, block) && a.scratch_bytes == b.scratch_bytes &&
         a.layouts.size() == b.layouts.size() && a.shortfall == b.shortfall;
}

class KeepingGraphs : public ::testing::Test {
 protected:
  graph::Graph expand(std::span<const uint8_t> record, OwnBlocks own = OwnBlocks::by_service) {
    auto graph = kept_.expand(record, own, topology_);
    EXPECT_TRUE(graph.ok()) << graph.status().text();
    if (!graph.ok()) return {};
    graph->seal();
    return std::move(graph.value());
  }
  ops::Collective exchange(uint64_t address) const {
    ops::Collective out;
    for (uint32_t peer = 0; peer < topology_.size(); ++peer) out.send.push_back({peer, 0, address + 64 * peer, 64, 0});
    out.recv = out.send;
    for (ops::Block& block : out.recv) block.address += 4096;
    return out;
  }

  const ops::Topology topology_ = ops::Topology::make(1, {0, 0, 1, 1});
  KeptGraphs kept_;
};

TEST_F(KeepingGraphs, WhatComesAgainHasTheSameGraph) {
  std::vector<uint8_t> record = encode(exchange(4096));
  const graph::Graph once = expand(record);
  EXPECT_EQ(kept_.count(), 0U) << "it may be the only one";
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(equal(expand(record), once));
    EXPECT_EQ(kept_.count(), 1U);
    record.push_back(1);  // what lies behind it in the segment
  }
  EXPECT_FALSE(equal(expand(encode(exchange(8192))), once));
  EXPECT_FALSE(equal(expand(record, OwnBlocks::by_client), once)) << "who copies the own block stands elsewhere";
}

TEST_F(KeepingGraphs, ReductionsAndLayoutsToo) {
  for (const auto kind : {OFFPATH_ALLREDUCE, OFFPATH_BCAST, OFFPATH_ALLGATHER}) {
    Case c{.kind = kind, .node_keys = {0, 0, 1, 1}, .bytes = 1000, .layouts = true};
    const Team team(c, 7);
    const std::vector<uint8_t> record = encode(team.collectives[1]);
    const graph::Graph once = expand(record);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(equal(expand(record), once)) << c.text();
  }
  EXPECT_EQ(kept_.count(), 3U);
}

TEST_F(KeepingGraphs, OneThatDiffersInAByteIsLookedAt) {
  std::vector<uint8_t> record = encode(exchange(4096));
  for (int i = 0; i < 3; ++i) expand(record);
  for (size_t cut = 0; cut < record.size(); ++cut) {
    EXPECT_FALSE(kept_.expand(std::span(record).first(cut), OwnBlocks::by_service, topology_).ok());
  }
  record[0] = 255;
  EXPECT_FALSE(kept_.expand(record, OwnBlocks::by_service, topology_).ok());
}

TEST_F(KeepingGraphs, ThereAreFewAndShortOnes) {
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 2 * KeptGraphs::kMost; ++i) expand(encode(exchange(4096 + 65536 * i)));
  }
  EXPECT_EQ(kept_.count(), 0U) << "they would only push each other out";
  for (uint64_t i = 0; i < 2 * KeptGraphs::kMost; ++i) {
    for (int again = 0; again < 2; ++again) expand(encode(exchange(4096 + 65536 * i)));
  }
  EXPECT_EQ(kept_.count(), KeptGraphs::kMost);
  ops::Collective large = exchange(4096);
  large.layouts.push_back({4096, 4096, {}});
  for (int64_t i = 0; i < int64_t{KeptGraphs::kMostParts}; ++i) large.layouts[0].ranges.push_back({4 * i, 4});
  const std::vector<uint8_t> before = encode(large);
  KeptGraphs fresh;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(fresh.expand(before, OwnBlocks::by_service, topology_).ok());
  EXPECT_EQ(fresh.count(), 0U);
}

}  // namespace
}  // namespace offpath::testing
