// SPDX-License-Identifier: BSD-3-Clause
// What services say about tasks: what was written is read, nothing else is believed, and no bytes are read that are not there.
#include "tasks/moving.hpp"

#include <gtest/gtest.h>

#include <random>

namespace offpath::tasks {
namespace {

Function some_function() { return {"/lib/x.so", "force", "force 1", true, true}; }

Task some_task(size_t argument, size_t ranges) {
  Task task;
  task.limit_ns = 4;
  task.cost_ns = 5;
  task.priority = -3;
  task.argument.assign(argument, 7);
  for (size_t i = 0; i < ranges; ++i) task.ranges.push_back({4096 * (i + 1), i, static_cast<uint32_t>(1 + i % 3), 0});
  return task;
}

TEST(Moving, TasksThereAndBack) {
  for (const size_t argument :
       {size_t{0}, size_t{1}, size_t{kInlineArgument}, size_t{kInlineArgument} + 1, size_t{65536}}) {
    for (const size_t ranges : {size_t{0}, size_t{3}, size_t{kMovedRanges}}) {
      const Task task = some_task(argument, ranges);
      const auto said = decode_said(encode_moved(9, some_function(), task, 4096));
      ASSERT_TRUE(said.ok()) << argument << " " << ranges;
      EXPECT_EQ(said->saying, Saying::task);
      EXPECT_EQ(said->number, 9U);
      EXPECT_EQ(said->moved.function, some_function());
      EXPECT_EQ(said->moved.task.limit_ns, 4U);
      EXPECT_EQ(said->moved.task.cost_ns, 5U);
      EXPECT_EQ(said->moved.task.priority, -3);
      const bool is_inline = argument <= kInlineArgument;
      EXPECT_EQ(said->moved.task.argument, is_inline ? task.argument : std::vector<uint8_t>());
      EXPECT_EQ(said->moved.argument_bytes, is_inline ? 0 : argument);
      ASSERT_EQ(said->moved.task.ranges.size(), ranges);
      for (size_t i = 0; i < ranges; ++i) {
        EXPECT_EQ(said->moved.task.ranges[i].bytes, i);
        EXPECT_EQ(said->moved.task.ranges[i].access, 1 + i % 3);
        EXPECT_EQ(said->moved.task.ranges[i].address, 0U);
      }
    }
  }
  EXPECT_TRUE(encode_moved(9, some_function(), some_task(0, kMovedRanges + 1), 4096).empty());
  EXPECT_TRUE(encode_moved(9, {std::string(4000, 'x'), "y", "", false}, some_task(100, 0), 4096).empty());
}

TEST(Moving, OthersThereAndBack) {
  const Load load{2, 1, 30, 4000000000, 7000000000, 600000, 90000000};
  const auto ask = decode_said(encode_ask(load));
  ASSERT_TRUE(ask.ok());
  EXPECT_EQ(ask->saying, Saying::ask);
  EXPECT_EQ(ask->load, load);
  for (const Saying saying : {Saying::collect, Saying::drop}) {
    const auto said = decode_said(encode_about(saying, 77));
    ASSERT_TRUE(said.ok());
    EXPECT_EQ(said->saying, saying);
    EXPECT_EQ(said->number, 77U);
  }
  const auto grant = encode(Grant{5, 6, 7});
  ASSERT_EQ(grant.size(), kGrantBytes);
  EXPECT_EQ(decode_grant(std::span<const uint8_t, kGrantBytes>(grant.data(), kGrantBytes)).count, 5U);
  uint8_t outcome[kOutcomeBytes];
  encode(Outcome{123456789012, 5}, outcome);
  EXPECT_EQ(decode_outcome(outcome).run_ns, 123456789012U);
}

TEST(Moving, RefusesWhatMakesNoSense) {
  const auto whole = encode_moved(9, some_function(), some_task(10, 4), 4096);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_FALSE(decode_said(std::span(whole).first(bytes)).ok()) << bytes;
  auto longer = whole;
  longer.push_back(0);
  EXPECT_FALSE(decode_said(longer).ok());
  for (const auto& said : {encode_ask({}), encode_about(Saying::drop, 1)}) {
    EXPECT_FALSE(decode_said(std::span(said).first(said.size() - 1)).ok());
    longer = said;
    longer.push_back(0);
    EXPECT_FALSE(decode_said(longer).ok());
  }
  EXPECT_FALSE(is_about_tasks(std::vector<uint8_t>(40, 0)));
  std::mt19937 random(29);
  for (int i = 0; i < 20000; ++i) {
    auto damaged = whole;
    for (int k = 0; k < 3; ++k) damaged[8 + random() % (damaged.size() - 8)] = static_cast<uint8_t>(random());
    const auto said = decode_said(damaged);
    if (!said.ok() || said->saying != Saying::task) continue;
    EXPECT_LE(said->moved.task.ranges.size(), kMovedRanges);
    for (const RangeRecord& range : said->moved.task.ranges)
      EXPECT_TRUE((range.access >= 1 && range.access <= 3) || range.access == OFFPATH_TASK_REPORT);
    EXPECT_FALSE(said->moved.function.symbol.empty());
  }
}

}  // namespace
}  // namespace offpath::tasks
