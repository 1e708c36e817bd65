// SPDX-License-Identifier: BSD-3-Clause
// The text form: what is read, what is refused and how, what is printed.
#include "policy/policy.hpp"

#include <gtest/gtest.h>

#include <string>

namespace offpath::policy {
namespace {

size_t count_of(const char* text) {
  Table table;
  const auto status = table.apply(text);
  EXPECT_TRUE(status.ok()) << status.text();
  return table.rows().size();
}

TEST(PolicyText, StarIsEveryCollectiveTheRowMakesSenseFor) {
  EXPECT_EQ(count_of("*:dpu"), 23u);
  EXPECT_EQ(count_of("*:1K-2K:dpu"), 22u);  // those with a size
  EXPECT_EQ(count_of("*:dpu=ring"), 3u);    // allgather, allgatherv, allreduce
  EXPECT_EQ(count_of("*:1K-2K:dpu=direct"), 14u);
}

TEST(PolicyText, LinesAndCommentsSeparateRowsToo) {
  Table lines, commas;
  ASSERT_TRUE(lines.apply("# all, of them\n\n ialltoall:1M-inf:dpu # why, a:b\r\nialltoallv:host,ibcast:dpu\n#").ok());
  ASSERT_TRUE(commas.apply("ialltoall:1M-inf:dpu,ialltoallv:host,,ibcast:dpu,").ok());
  EXPECT_EQ(lines.print(), commas.print());
  EXPECT_EQ(lines.rows().size(), 3u);
  EXPECT_EQ(count_of(""), 0u);
  EXPECT_EQ(count_of("# nothing"), 0u);
}

TEST(PolicyText, BadTextChangesNothingAndNamesTheRow) {
  Table table = Table::measured();
  const std::string before = table.print();
  const struct {
    const char* text;
    const char* expected;
  } cases[] = {
      {"ialltoal:dpu", "no known collective. Known: ibarrier, ibcast, igather[v]"},
      {"ialltoall", "where to run"},
      {"ialltoall:1M-2M", "where to run"},
      {"ialltoall:2M-1M:dpu", "empty range"},
      {"ialltoall:x-1M:dpu", "no number"},
      {"ialltoall:1-2X:dpu", "no number"},
      {"ialltoall:-1-5:dpu", "no number"},
      {"window:0-1M:dpu", "no size"},
      {"window:dpu=direct", "does not know"},
      {"ialltoall:gpu", "neither a range"},
      {"ialltoall:nodes=x:dpu", "number of nodes"},
      {"ialltoall:99999999999999999999-inf:dpu", "no number"},
      {"ialltoall:dpu,bogus:host", "'bogus:host'"},
      {"ialltoall:dpu\nbogus:host # here", "'bogus:host'"},
      {"ialltoall:dpu=rings", "no known algorithm. Known: default, direct, ring,"},
      {"*:dpu=rings", "no known algorithm"},
      {"ialltoall:dpu=", "no known algorithm"},
      {"ibcast:dpu=ring", "does not know. Known: default, chain, binomial, scatter_allgather"},
      {"ialltoall:host=direct", "algorithm for the host"},
      {"ialltoall:1K-2K:4K-8K:dpu", "one thing twice"},
      {"ialltoall:dpu:1K-2K:host", "one thing twice"},
      {"ialltoall:nodes=2:nodes=4:dpu", "one thing twice"},
  };
  for (const auto& item : cases) {
    const auto status = table.apply(item.text);
    EXPECT_FALSE(status.ok()) << item.text;
    EXPECT_NE(std::string(status.text()).find(item.expected), std::string::npos) << status.text();
    EXPECT_EQ(table.print(), before);
  }
}

TEST(PolicyText, TheLongestErrorFits) {
  Table table;
  const std::string row = std::string(200, 'x') + ":dpu";
  const std::string text = table.apply(row).text();
  EXPECT_TRUE(text.ends_with("*")) << text;
}

TEST(PolicyText, AnUnknownAlgorithmIsToldAllThatThereAre) {
  Table table;
  const std::string text = table.apply("ialltoall:1048576-16777216:nodes=16:dpu=" + std::string(100, 'x')).text();
  for (const auto& algorithm : base::Words<offpath_algorithm_t>::rows)
    EXPECT_NE(text.find(algorithm.text), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with(std::end(base::Words<offpath_algorithm_t>::rows)[-1].text)) << text;
}

TEST(PolicyText, PrintsWhatItReads) {
  Table table;
  ASSERT_TRUE(table
                  .apply("ialltoall:3-1025:nodes=3:dpu,ialltoall:1G-inf:host,ialltoallv:4K-inf:dpu=direct,"
                         "ibcast:nodes=2:dpu=scatter_allgather,ibcast:dpu=default")
                  .ok());
  EXPECT_EQ(table.print(),
            "ialltoall:3-1025:nodes=3:dpu\nialltoall:1G-inf:host\nialltoallv:4K-inf:dpu=direct\n"
            "ibcast:0-inf:nodes=2:dpu=scatter_allgather\nibcast:0-inf:dpu\n");
  for (const Table& each : {table, Table::measured()}) {
    Table again;
    ASSERT_TRUE(again.apply(each.print()).ok());
    EXPECT_EQ(again.print(), each.print());
  }
}

}  // namespace
}  // namespace offpath::policy
