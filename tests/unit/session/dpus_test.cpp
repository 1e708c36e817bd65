// SPDX-License-Identifier: BSD-3-Clause
#include "session/dpus.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace offpath::session {
namespace {

const std::string kNames[] = {"node2.cluster", "10.0.0.2", "fe80::2"};

TEST(Dpus, ANodeIsFoundByNameOrAddress) {
  for (const char* list : {"node1=a;node2=b,c", "NODE2=b,c;node1=a", "node2.cluster=b,c", "10.0.0.1=a;10.0.0.2=b,c",
                           "fe80::2=b,c", "*=a;node2=b,c"}) {
    const auto found = dpus_of(list, kNames);
    ASSERT_TRUE(found.ok()) << list << ": " << found.status().text();
    EXPECT_EQ(found.value(), "b,c") << list;
  }
}

TEST(Dpus, AnEntryMayHaveSpacesAndEqualsSigns) {
  const auto found = dpus_of("node2=exec:ssh -o A=yes dpu offpathd --for-agents", kNames);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found.value(), "exec:ssh -o A=yes dpu offpathd --for-agents");
}

TEST(Dpus, WhatTheShellTakesAsQuotedSeparatesNothing) {
  using Parts = std::vector<std::string>;
  EXPECT_EQ(unquoted_parts("exec:a b,,exec:c,", ','), (Parts{"exec:a b", "exec:c"}));
  EXPECT_EQ(unquoted_parts("", ','), Parts{});
  for (const char* part : {"exec:a '0,2'", R"(exec:a "0,2")", R"(exec:a 0\,2)", R"(exec:a "\",")", R"(exec:a '\'\,2)",
                           R"(exec:a "it's, so")", R"(exec:no end ',)"}) {
    EXPECT_EQ(unquoted_parts(part, ','), Parts{part});
    const std::string list = std::string("host:1,") + part;
    EXPECT_EQ(unquoted_parts(list, ','), (Parts{"host:1", part}));
  }
  EXPECT_EQ(dpus_of("node1=exec:a 'x;y';node2=exec:sh -c 'b;c,d',e", kNames).value(), "exec:sh -c 'b;c,d',e");
}

TEST(Dpus, WhoIsNotNamedTakesTheStarOrIsToldSo) {
  EXPECT_EQ(dpus_of("node1=a;*=b", kNames).value(), "b");
  for (const char* list : {"node1=a", "node22=a", "node2.elsewhere=a", "10.0.0.22=a", "10=a"}) {
    const auto found = dpus_of(list, kNames);
    ASSERT_FALSE(found.ok()) << list;
    EXPECT_NE(std::string(found.status().text()).find("node2.cluster is not in the list"), std::string::npos);
  }
  for (const char* list : {"a", "=a", "node1="}) {
    EXPECT_EQ(dpus_of(list, kNames).status().code(), OFFPATH_ERR_ARGUMENT) << list;
  }
}

TEST(Dpus, TheNodesOwnVariableWins) {
  unsetenv("OFFPATH_DPU");
  unsetenv("OFFPATH_DPUS");
  EXPECT_EQ(own_dpus().value(), "");
  setenv("OFFPATH_DPUS", "*=a", 1);
  EXPECT_EQ(own_dpus().value(), "a");
  setenv("OFFPATH_DPU", "b", 1);
  EXPECT_EQ(own_dpus().value(), "b");
  setenv("OFFPATH_DPUS", "nobody=a", 1);
  unsetenv("OFFPATH_DPU");
  EXPECT_EQ(own_dpus().status().code(), OFFPATH_ERR_NO_SERVICE);
  unsetenv("OFFPATH_DPUS");
}

}  // namespace
}  // namespace offpath::session
