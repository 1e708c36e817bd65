// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/recording/user_regions.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace offpath::mpi::recording {
namespace {

struct Read {
  std::string name;
  RegionBody body;
  bool left_open;
};

class UserRegionsTest : public testing::Test {
 protected:
  void SetUp() override {
    const int file = mkstemp(path_.data());
    ASSERT_GE(file, 0);
    part_.open(path_);
  }
  void TearDown() override { std::remove(path_.c_str()); }

  // What a reader of the file finds.
  std::vector<Read> read() {
    part_.finish();
    std::ifstream file(path_, std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    std::vector<Read> found;
    std::vector<std::string> names(1 << 16);
    RecordHead head;
    for (size_t at = 0; at + sizeof(head) <= content.size(); at += sizeof(head) + head.words * sizeof(uint64_t)) {
      memcpy(&head, content.data() + at, sizeof(head));
      const char* body = content.data() + at + sizeof(head);
      if (head.tag == static_cast<uint8_t>(Tag::text))
        names[head.name] = std::string(body, strnlen(body, head.words * sizeof(uint64_t)));
      if (head.tag != static_cast<uint8_t>(Tag::region)) continue;
      Read each{names[head.name], {}, head.flags == kLeftOpen};
      memcpy(&each.body, body, sizeof(each.body));
      found.push_back(each);
    }
    return found;
  }

  std::string path_ = testing::TempDir() + "regionsXXXXXX";
  Part part_;
  UserRegions regions_;
};

TEST_F(UserRegionsTest, EndsWithWhatBeganInside) {
  regions_.begin(part_, 0, "outer", 1);
  regions_.begin(part_, 0, "inner", 2);
  regions_.begin(part_, 1, "inner", 3);
  regions_.end(part_, 0, "outer", 5);
  regions_.end(part_, 0, "inner", 6);  // has ended already
  regions_.end(part_, 1, "outer", 7);  // of the other thread
  regions_.end(part_, 1, "inner", 8);
  const auto found = read();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].name, "inner");
  EXPECT_EQ(found[0].body.begin_ns, 2U);
  EXPECT_EQ(found[0].body.end_ns, 5U);
  EXPECT_EQ(found[1].name, "outer");
  EXPECT_EQ(found[2].body.thread, 1U);
  EXPECT_EQ(found[2].body.end_ns, 8U);
}

TEST_F(UserRegionsTest, TheInnermostOfANameEnds) {
  for (uint64_t i = 0; i < 3; ++i) regions_.begin(part_, 0, "again", i);
  regions_.end(part_, 0, "again", 10);
  const auto found = read();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].body.begin_ns, 2U);
}

TEST_F(UserRegionsTest, WhatIsOpenEndsWithTheProgram) {
  regions_.begin(part_, 0, "open", 4);
  regions_.begin(part_, 3, "later", 9);
  regions_.end_all(part_, 7);
  const auto found = read();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_TRUE(found[0].left_open && found[1].left_open);
  EXPECT_EQ(found[0].body.end_ns, 7U);
  EXPECT_EQ(found[1].body.end_ns, 9U) << "a region that ends before it began";
}

TEST_F(UserRegionsTest, NamesDepthsAndLengthsHaveBounds) {
  for (size_t i = 0; i < UserRegions::kMaxNames + 100; ++i) {
    regions_.begin(part_, 0, std::to_string(i), i);
    regions_.end(part_, 0, std::to_string(i), i + 1);
  }
  const std::string deep = "deep";
  for (size_t i = 0; i < 2 * UserRegions::kMaxDepth; ++i) regions_.begin(part_, 1, deep, i);
  regions_.end_all(part_, 100'000);
  const auto found = read();
  ASSERT_EQ(found.size(), UserRegions::kMaxNames + 100 + UserRegions::kMaxDepth);
  EXPECT_EQ(found[UserRegions::kMaxNames - 1].name, std::to_string(UserRegions::kMaxNames - 1));
  EXPECT_EQ(found[UserRegions::kMaxNames].name, "(more names)");
  UserRegions others;
  others.begin(part_, 0, std::string(5000, 'x'), 1);
  others.end(part_, 0, std::string(5000, 'x'), 2);
  EXPECT_EQ(read().back().name, std::string(UserRegions::kMaxNameBytes, 'x'));
}

TEST_F(UserRegionsTest, WhatIsTooDeepEndsBeforeWhatItLiesIn) {
  for (size_t i = 0; i < UserRegions::kMaxDepth + 2; ++i) regions_.begin(part_, 0, "deep", i);
  for (uint64_t now = 10'000; now < 10'003; ++now) regions_.end(part_, 0, "deep", now);
  const auto found = read();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].body.begin_ns, UserRegions::kMaxDepth - 1);
  EXPECT_EQ(found[0].body.end_ns, 10'002U);
}

TEST(ThreadNumber, EachThreadHasItsOwn) {
  const uint32_t own = thread_number();
  uint32_t other = own;
  std::thread([&] { other = thread_number(); }).join();
  EXPECT_NE(own, other);
  EXPECT_EQ(own, thread_number());
}

}  // namespace
}  // namespace offpath::mpi::recording
