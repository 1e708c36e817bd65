// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/recording/part.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace offpath::mpi::recording {
namespace {

class PartTest : public testing::Test {
 protected:
  void SetUp() override {
    const int file = mkstemp(path_.data());
    ASSERT_GE(file, 0);
    part_.open(path_);
    part_.write_header("{\"a\": 1}");
  }
  void TearDown() override { std::remove(path_.c_str()); }

  // What somebody finds who kills the process now.
  std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string header() const { return content().substr(0, content().find('\n')); }
  void add(uint64_t end_ns) { part_.add(Tag::wait, 0, 0, WaitBody{0, end_ns, 0, 0, 0}); }

  std::string path_ = testing::TempDir() + "partXXXXXX";
  Part part_;
};

TEST_F(PartTest, TheHeaderIsThereAtOnce) {
  EXPECT_EQ(header().find("{\"a\": 1}"), 0U);
  EXPECT_EQ(content().back(), '\n');
}

TEST_F(PartTest, WhatIsOldEnoughIsInTheFile) {
  constexpr size_t kRecord = sizeof(RecordHead) + sizeof(WaitBody);
  const size_t empty = content().size();
  const uint64_t begin_ns = 5'000'000'000;
  add(begin_ns);
  EXPECT_EQ(content().size(), empty + kRecord);
  for (uint64_t i = 1; i < 5; ++i) add(begin_ns + i);
  EXPECT_EQ(content().size(), empty + kRecord);  // no write for each
  add(begin_ns + 10'000'000);
  EXPECT_EQ(content().size(), empty + 6 * kRecord);
}

TEST_F(PartTest, AFullDiskIsNotedInTheHeader) {
  add(1);
  const size_t length = content().size();
  const rlimit least{length, RLIM_INFINITY};
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &least);
  add(20'000'000);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_FALSE(part_.ok());
  EXPECT_EQ(content().size(), length);
  EXPECT_EQ(header().find("{\"a\": 1, \"errno\": " + std::to_string(EFBIG) + "}"), 0U) << header();
  add(40'000'000);
  EXPECT_EQ(content().size(), length);
}

TEST(Part, NothingCanBeWritten) {
  Part part;
  part.open("/dev/full");
  part.write_header("{}");
  EXPECT_FALSE(part.ok());
}

}  // namespace
}  // namespace offpath::mpi::recording
