// SPDX-License-Identifier: BSD-3-Clause
#include "policy/policy.hpp"

#include <gtest/gtest.h>

#include <string>

namespace offpath::policy {
namespace {

constexpr uint64_t kKiB = 1024;

TEST(Policy, MeasuredTableLeavesSmallAndInNodeOnTheHost) {
  const Table table = Table::measured();
  EXPECT_EQ(table.choose(Collective::ialltoall, 256 * kKiB - 1, 2), Path::host);
  EXPECT_EQ(table.choose(Collective::ialltoall, 256 * kKiB, 2), Path::dpu);
  EXPECT_EQ(table.choose(Collective::ialltoall, UINT64_MAX, 2), Path::dpu);
  EXPECT_EQ(table.choose(Collective::ialltoall, 64 * 1024 * kKiB, 1), Path::host);
  EXPECT_EQ(table.choose(Collective::ialltoallv, 0, 2), Path::dpu);
  EXPECT_EQ(table.choose(Collective::ialltoallv, 0, 1), Path::host);
  EXPECT_FALSE(table.offloads(1));
  EXPECT_TRUE(table.offloads(2));
}

TEST(Policy, EmptyTableIsHost) {
  const Table table;
  EXPECT_EQ(table.choose(Collective::ialltoall, 1 << 30, 16), Path::host);
  EXPECT_FALSE(table.offloads(16));
}

TEST(Policy, LaterRowsWin) {
  Table table = Table::measured();
  ASSERT_TRUE(table.apply("ialltoall:0-inf:dpu, ialltoall:4K-8K:host ,ialltoallv:host").ok());
  EXPECT_EQ(table.choose(Collective::ialltoall, 0, 1), Path::dpu);
  EXPECT_EQ(table.choose(Collective::ialltoall, 4096, 1), Path::host);
  EXPECT_EQ(table.choose(Collective::ialltoall, 8191, 1), Path::host);
  EXPECT_EQ(table.choose(Collective::ialltoall, 8192, 1), Path::dpu);
  EXPECT_EQ(table.choose(Collective::ialltoallv, 0, 4), Path::host);
}

TEST(Policy, OverrideMayDropOrSetTheNodes) {
  Table table = Table::measured();
  ASSERT_TRUE(table.apply("ialltoallv:dpu").ok());
  EXPECT_TRUE(table.offloads(1));
  Table strict;
  ASSERT_TRUE(strict.apply("*:nodes=4:dpu").ok());
  EXPECT_FALSE(strict.offloads(3));
  EXPECT_EQ(strict.choose(Collective::ialltoall, 1, 4), Path::dpu);
  EXPECT_EQ(strict.choose(Collective::ialltoallv, 1, 4), Path::dpu);
}

TEST(Policy, HiddenRowsDoNotOffload) {
  Table table = Table::measured();
  ASSERT_TRUE(table.apply("*:host").ok());
  EXPECT_FALSE(table.offloads(2));
  ASSERT_TRUE(table.apply("ialltoall:1M-2M:dpu").ok());
  EXPECT_TRUE(table.offloads(2));
  ASSERT_TRUE(table.apply("ialltoall:0-1536K:host").ok());
  EXPECT_TRUE(table.offloads(2)) << "1.5M to 2M is left";
}

TEST(Policy, BadTextChangesNothingAndNamesTheRow) {
  Table table = Table::measured();
  const std::string before = table.print();
  const struct {
    const char* text;
    const char* expected;
  } cases[] = {
      {"ialltoal:dpu", "no known collective"},
      {"ialltoall", "where to run"},
      {"ialltoall:1M-2M", "where to run"},
      {"ialltoall:2M-1M:dpu", "empty range"},
      {"ialltoall:x-1M:dpu", "no number"},
      {"ialltoall:1-2X:dpu", "no number"},
      {"ialltoall:-1-5:dpu", "no number"},
      {"ialltoallv:0-1M:dpu", "no common size"},
      {"ialltoall:gpu", "neither a range"},
      {"ialltoall:nodes=x:dpu", "number of nodes"},
      {"ialltoall:99999999999999999999-inf:dpu", "no number"},
      {"ialltoall:dpu,bogus:host", "'bogus:host'"},
  };
  for (const auto& item : cases) {
    const auto status = table.apply(item.text);
    EXPECT_FALSE(status.ok()) << item.text;
    EXPECT_NE(std::string(status.text()).find(item.expected), std::string::npos) << status.text();
    EXPECT_EQ(table.print(), before);
  }
}

TEST(Policy, PrintsWhatItReads) {
  Table table = Table::measured();
  ASSERT_TRUE(table.apply("ialltoall:3-1025:nodes=3:dpu,ialltoall:1G-inf:host").ok());
  std::string text = table.print();
  EXPECT_EQ(text,
            "ialltoall:256K-inf:nodes=2:dpu\nialltoallv:nodes=2:dpu\nialltoall:3-1025:nodes=3:dpu\n"
            "ialltoall:1G-inf:host\n");
  for (char& c : text) {
    if (c == '\n') c = ',';
  }
  Table again;
  ASSERT_TRUE(again.apply(text).ok());
  EXPECT_EQ(again.print(), table.print());
}

}  // namespace
}  // namespace offpath::policy
