// SPDX-License-Identifier: BSD-3-Clause
// What a DPU says of its service, and how it is asked.
#include "agent/reach.hpp"

#include <gtest/gtest.h>

namespace offpath::agent {
namespace {

constexpr uint8_t kToken[OFFPATH_TOKEN_BYTES] = {'t', 'o', 'k', 'e', 'n', '\n'};

TEST(Reach, TheLineSaysAll) {
  const Reached reached{{{0x00, 0xab, 0x7f}, {0x01}}, "1.2.3", "aarch64", 8};
  EXPECT_EQ(to_line(reached), R"({"address": "00ab7f,01", "version": "1.2.3", "machine": "aarch64", "cores": 8})");
  const auto read = from_line(to_line(reached));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->addresses, reached.addresses);
  EXPECT_EQ(read->version, "1.2.3");
  EXPECT_EQ(read->machine, "aarch64");
  EXPECT_EQ(read->cores, 8U);
  const std::string line = to_line(reached);
  for (size_t bytes = 0; bytes < line.size() - 3; ++bytes) EXPECT_FALSE(from_line(line.substr(0, bytes)).ok()) << bytes;
  for (const char* address : {"", "00,", ",00", "0", "0g", "00,1"}) {
    EXPECT_FALSE(from_line(R"({"address": ")" + std::string(address) +
                           R"(", "version": "1.2.3", "machine": "aarch64", "cores": 8})")
                     .ok())
        << address;
  }
  EXPECT_FALSE(from_line("ssh: connect to host dpu port 22: No route to host").ok());
}

TEST(Reach, ACommandGetsTheTokenAndSaysWhere) {
  const auto reached = reach(
      R"(exec:read word; test "$word" = token && echo '{"address": "01", "version": "1", "machine": "m", "cores": 2}')",
      kToken, 60000);
  ASSERT_TRUE(reached.ok()) << reached.status().text();
  EXPECT_EQ(reached->cores, 2U);
}

TEST(Reach, WhatIsWrongIsSaid) {
  EXPECT_NE(std::string(reach("exec:echo nonsense", kToken, 60000).status().text()).find("nonsense"),
            std::string::npos);
  EXPECT_NE(std::string(reach("exec:false", kToken, 60000).status().text()).find("OFFPATH_DPU"), std::string::npos);
  EXPECT_NE(std::string(reach("somewhere", kToken, 60000).status().text()).find("exec:COMMAND"), std::string::npos);
  const auto missing = reach("exec:echo first >&2; echo 'no libhwloc.so.15' >&2; exit 127", kToken, 60000);
  EXPECT_NE(std::string(missing.status().text()).find("no libhwloc.so.15"), std::string::npos)
      << missing.status().text();
  EXPECT_FALSE(reach("exec:cat >/dev/null; sleep 1000", kToken, 1).ok()) << "it is not waited for";
}

}  // namespace
}  // namespace offpath::agent
