// SPDX-License-Identifier: BSD-3-Clause
#include "policy/policy.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <string>

namespace offpath::policy {
namespace {

constexpr uint64_t kKiB = 1024;

Path path(const Table& table, Collective collective, uint64_t bytes, uint32_t nodes) {
  return table.choose(collective, bytes, nodes).path;
}

TEST(Policy, MeasuredTableLeavesSmallAndInNodeOnTheHost) {
  const Table table = Table::measured();
  struct Threshold {
    Collective collective;
    uint64_t bytes;
  };
  for (const auto& [collective, bytes] : {Threshold{Collective::ialltoall, 512 * kKiB},
                                          {Collective::ibcast, 256 * kKiB},
                                          {Collective::ireduce_scatter_block, 256 * kKiB}}) {
    EXPECT_EQ(path(table, collective, bytes - 1, 2), Path::host);
    EXPECT_EQ(path(table, collective, bytes, 2), Path::dpu);
    EXPECT_EQ(path(table, collective, UINT64_MAX, 2), Path::dpu);
    EXPECT_EQ(path(table, collective, 64 * 1024 * kKiB, 1), Path::host);
  }
  for (const Collective collective : {Collective::ialltoallv, Collective::igatherv, Collective::ineighbor_allgather}) {
    EXPECT_EQ(path(table, collective, 256 * kKiB - 1, 2), Path::host) << "bytes of one block";
    EXPECT_EQ(path(table, collective, 256 * kKiB, 2), Path::dpu);
    EXPECT_EQ(path(table, collective, UINT64_MAX, 1), Path::host);
  }
  EXPECT_EQ(path(table, Collective::window, 0, 2), Path::dpu);
  EXPECT_EQ(path(table, Collective::window, 0, 1), Path::host);
  for (const Collective collective : {Collective::ibarrier, Collective::iscan, Collective::iexscan})
    EXPECT_EQ(path(table, collective, 1 << 30, 64), Path::host);
  EXPECT_FALSE(table.offloads(1));
  EXPECT_TRUE(table.offloads(2));
}

TEST(Policy, EveryCollectiveHasItsOwnRowOfNames) {
  const char* in_order[] = {"ibarrier",
                            "ibcast",
                            "igather",
                            "igatherv",
                            "iscatter",
                            "iscatterv",
                            "iallgather",
                            "iallgatherv",
                            "ialltoall",
                            "ialltoallv",
                            "ialltoallw",
                            "ireduce",
                            "iallreduce",
                            "ireduce_scatter",
                            "ireduce_scatter_block",
                            "iscan",
                            "iexscan",
                            "ineighbor_allgather",
                            "ineighbor_allgatherv",
                            "ineighbor_alltoall",
                            "ineighbor_alltoallv",
                            "ineighbor_alltoallw",
                            "window",
                            "send",
                            "write",
                            "read"};
  ASSERT_EQ(std::size(in_order), kCollectivesCount);
  for (size_t i = 0; i < kCollectivesCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    Table table;
    const std::string name = collective_name(collective);
    EXPECT_EQ(name, in_order[i]);
    ASSERT_TRUE(table.apply(name + ":dpu").ok());
    ASSERT_EQ(table.rows().size(), 1u);
    EXPECT_EQ(table.rows()[0].collective, collective);
    EXPECT_TRUE(knows(collective, OFFPATH_ALGORITHM_DEFAULT));
    // MPI's own rule: what no size is known of to all ranks is irregular.
    const bool of_ranks = name == "igatherv" || name == "iscatterv" || name == "ialltoallv" || name == "ialltoallw";
    EXPECT_EQ(is_irregular(collective), of_ranks || !is_collective(collective) || name.starts_with("ineighbor_"))
        << name;
  }
}

TEST(Policy, AlgorithmsAreThoseThatOffpathHNames) {
  EXPECT_STREQ(algorithm_name(OFFPATH_ALGORITHM_SCATTER_ALLGATHER), "scatter_allgather");
  EXPECT_STREQ(algorithm_name(OFFPATH_ALGORITHM_DISSEMINATION), "dissemination");
  const struct {
    offpath_algorithm_t algorithm;
    std::set<Collective> known;  // of the regular ones
  } cases[] = {
      {OFFPATH_ALGORITHM_DIRECT,
       {Collective::igather, Collective::iscatter, Collective::ialltoall, Collective::iallgather,
        Collective::iallgatherv}},
      {OFFPATH_ALGORITHM_RING, {Collective::iallgather, Collective::iallgatherv, Collective::iallreduce}},
      {OFFPATH_ALGORITHM_CHAIN, {Collective::ibcast, Collective::iscan, Collective::iexscan}},
      {OFFPATH_ALGORITHM_BINOMIAL, {Collective::ibcast, Collective::ireduce}},
      {OFFPATH_ALGORITHM_SCATTER_ALLGATHER, {Collective::ibcast}},
      {OFFPATH_ALGORITHM_DOUBLING, {Collective::iallreduce, Collective::iscan, Collective::iexscan}},
      {OFFPATH_ALGORITHM_RABENSEIFNER, {Collective::iallreduce, Collective::ireduce}},
      {OFFPATH_ALGORITHM_PAIRWISE, {Collective::ireduce_scatter, Collective::ireduce_scatter_block}},
      {OFFPATH_ALGORITHM_DISSEMINATION, {Collective::ibarrier}},
      {OFFPATH_ALGORITHM_MULTICAST, {Collective::ibcast, Collective::iallgather, Collective::iallgatherv}},
  };
  for (const auto& item : cases) {
    for (size_t i = 0; i < kCollectivesCount; ++i) {
      const auto collective = static_cast<Collective>(i);
      if (!is_collective(collective)) continue;  // no algorithms but DEFAULT
      const bool expected =
          is_irregular(collective) ? item.algorithm == OFFPATH_ALGORITHM_DIRECT : item.known.count(collective) == 1;
      EXPECT_EQ(knows(collective, item.algorithm), expected)
          << collective_name(collective) << " " << algorithm_name(item.algorithm);
    }
  }
}

TEST(Policy, MessagesAreForcedByTheirNameOnly) {
  Table table;
  ASSERT_TRUE(table.apply("*:dpu").ok());
  for (const Collective each : {Collective::send, Collective::write, Collective::read})
    EXPECT_EQ(path(table, each, 1 << 30, 2), Path::host);
  ASSERT_TRUE(table.apply("write:1M-inf:dpu").ok());
  EXPECT_EQ(path(table, Collective::write, 1 << 20, 1), Path::dpu) << "also in a job of one node";
  EXPECT_EQ(path(table, Collective::read, 1 << 20, 1), Path::host);
  ASSERT_TRUE(table.apply("send:1M-inf:nodes=2:dpu").ok());
  EXPECT_EQ(path(table, Collective::send, 1 << 20, 2), Path::dpu);
  EXPECT_EQ(path(table, Collective::send, 1 << 20, 1), Path::host) << "two ranks of a node";
  EXPECT_EQ(path(table, Collective::send, (1 << 20) - 1, 2), Path::host);
  ASSERT_TRUE(table.apply("*:host").ok());
  EXPECT_EQ(path(table, Collective::send, 1 << 30, 2), Path::host);
  EXPECT_EQ(path(Table::measured(), Collective::send, 512 << 10, 2), Path::dpu);
  EXPECT_EQ(path(Table::measured(), Collective::send, 1 << 30, 1), Path::host);
}

TEST(Policy, MeasuredRowsBeginLaterWhereTheNetworkIsFaster) {
  const auto first = [](const Network& network, Collective collective) {
    const Table table = Table::measured(network);
    uint64_t bytes = kKiB;
    while (bytes < (1ull << 40) && path(table, collective, bytes, 2) == Path::host) bytes *= 2;
    return bytes;
  };
  EXPECT_EQ(first({}, Collective::ialltoall), 512 * kKiB);
  EXPECT_EQ(first({0.03, true}, Collective::ialltoall), 512 * kKiB) << "250 Mbit/s";
  EXPECT_EQ(first({0.16, true}, Collective::ialltoall), 512 * kKiB) << "1 Gbit/s, and what the switch takes at once";
  EXPECT_EQ(first({0.4, true}, Collective::send), 1024 * kKiB) << "2.5 Gbit/s";
  EXPECT_EQ(first({1.2, false}, Collective::ibcast), 8 * 256 * kKiB) << "10 Gbit/s";
}

TEST(Policy, MessagesStayWithTheMpiWhereRanksShareCoresWithEachOther) {
  const Table table = Table::measured({0.16, true, true});
  EXPECT_FALSE(table.offloads(Collective::send, 2));
  EXPECT_TRUE(table.offloads(Collective::ialltoall, 2));
  EXPECT_TRUE(Table::measured({0.16, true, false}).offloads(Collective::send, 2));
  EXPECT_TRUE(Table::measured({0.16, false, true}).offloads(Collective::send, 2)) << "services have their own";
}

TEST(Policy, NothingIsMeasuredToGainOnSharedCoresBesideAFastNetwork) {
  const Table table = Table::measured({1.2, true});
  EXPECT_FALSE(table.is_measured(2));
  EXPECT_FALSE(table.offloads(Collective::ialltoall, 2));
  EXPECT_TRUE(table.offloads(Collective::window, 2)) << "finds out by itself";
  EXPECT_TRUE(Table::measured({1.2, false}).is_measured(2));
  EXPECT_FALSE(Table::measured().is_measured(1));
  Table forced = Table::measured();
  ASSERT_TRUE(forced.apply("*:dpu,send:host").ok());
  EXPECT_FALSE(forced.is_measured(2));
  Table above = Table::measured();
  ASSERT_TRUE(above.apply("*:0-1M:host").ok());
  EXPECT_TRUE(above.is_measured(2)) << "behind what hides the beginning of its rows";
}

TEST(Policy, EmptyTableIsHost) {
  const Table table;
  EXPECT_EQ(path(table, Collective::ialltoall, 1 << 30, 16), Path::host);
  EXPECT_EQ(table.choose(Collective::ialltoall, 1 << 30, 16).algorithm, OFFPATH_ALGORITHM_DEFAULT);
  EXPECT_FALSE(table.offloads(16));
}

TEST(Policy, LaterRowsWin) {
  Table table = Table::measured();
  ASSERT_TRUE(table.apply("ialltoall:0-inf:dpu, ialltoall:4K-8K:host ,ialltoallv:host").ok());
  EXPECT_EQ(path(table, Collective::ialltoall, 0, 1), Path::dpu);
  EXPECT_EQ(path(table, Collective::ialltoall, 4096, 1), Path::host);
  EXPECT_EQ(path(table, Collective::ialltoall, 8191, 1), Path::host);
  EXPECT_EQ(path(table, Collective::ialltoall, 8192, 1), Path::dpu);
  EXPECT_EQ(path(table, Collective::ialltoallv, UINT64_MAX, 4), Path::host);
}

TEST(Policy, TheRowThatDecidesSaysHow) {
  Table table;
  ASSERT_TRUE(table.apply("iallreduce:dpu,iallreduce:64K-inf:nodes=2:dpu=ring").ok());
  EXPECT_EQ(table.choose(Collective::iallreduce, 64 * kKiB, 1).algorithm, OFFPATH_ALGORITHM_DEFAULT);
  EXPECT_EQ(table.choose(Collective::iallreduce, 64 * kKiB - 1, 2).algorithm, OFFPATH_ALGORITHM_DEFAULT);
  EXPECT_EQ(table.choose(Collective::iallreduce, 64 * kKiB, 2).algorithm, OFFPATH_ALGORITHM_RING);
  ASSERT_TRUE(table.apply("iallreduce:1M-inf:dpu=default").ok());
  EXPECT_EQ(table.choose(Collective::iallreduce, 1024 * kKiB, 2).algorithm, OFFPATH_ALGORITHM_DEFAULT);
}

TEST(Policy, OverrideMayDropOrSetTheNodes) {
  Table table = Table::measured();
  ASSERT_TRUE(table.apply("ialltoallv:dpu").ok());
  EXPECT_TRUE(table.offloads(1));
  Table strict;
  ASSERT_TRUE(strict.apply("*:nodes=4:dpu").ok());
  EXPECT_FALSE(strict.offloads(3));
  EXPECT_EQ(path(strict, Collective::ialltoall, 1, 4), Path::dpu);
  EXPECT_EQ(path(strict, Collective::ialltoallv, 1, 4), Path::dpu);
}

TEST(Policy, HiddenRowsDoNotOffload) {
  Table table = Table::measured();
  ASSERT_TRUE(table.apply("*:host").ok());
  EXPECT_FALSE(table.offloads(2));
  ASSERT_TRUE(table.apply("ialltoall:1M-2M:dpu").ok());
  EXPECT_TRUE(table.offloads(2));
  ASSERT_TRUE(table.apply("ialltoall:0-1536K:host").ok());
  EXPECT_TRUE(table.offloads(2)) << "1.5M to 2M is left";
  EXPECT_TRUE(table.offloads(Collective::ialltoall, 2));
  EXPECT_FALSE(table.offloads(Collective::ialltoallv, 2));
  ASSERT_TRUE(table.apply("ialltoallv:4K-8K:nodes=3:dpu").ok());
  EXPECT_FALSE(table.offloads(Collective::ialltoallv, 2));
  EXPECT_TRUE(table.offloads(Collective::ialltoallv, 3));
  ASSERT_TRUE(table.apply("ialltoallv:2K-6K:host,ialltoallv:6K-8K:host").ok());
  EXPECT_FALSE(table.offloads(Collective::ialltoallv, 3)) << "nothing is left";
}

}  // namespace
}  // namespace offpath::policy
