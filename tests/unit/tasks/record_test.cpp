// SPDX-License-Identifier: BSD-3-Clause
// Records of functions and tasks: what was written is read, and no bytes are read that are not there.
#include "tasks/record.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace offpath::tasks {
namespace {

Task some_task() {
  Task task;
  task.function = 3;
  task.priority = -2;
  task.limit_ns = 4;
  task.cost_ns = 5;
  task.deadline_ns = 6;
  task.argument = {7, 8, 9};
  task.ranges = {{4096, 10, OFFPATH_TASK_IN, 0}, {8192, 0, OFFPATH_TASK_OUT, 0}};
  task.after = {1, kEndedWell};
  return task;
}

TEST(TaskRecord, ThereAndBack) {
  uint64_t after = 0;
  const auto bytes = encode(some_task(), &after);
  const auto task = decode_task(bytes);
  ASSERT_TRUE(task.ok());
  EXPECT_EQ(task->function, 3U);
  EXPECT_EQ(task->priority, -2);
  EXPECT_EQ(task->limit_ns + task->cost_ns + task->deadline_ns, 15U);
  EXPECT_EQ(task->argument, some_task().argument);
  EXPECT_EQ(task->after, some_task().after);
  ASSERT_EQ(task->ranges.size(), 2U);
  EXPECT_EQ(task->ranges[1].address, 8192U);
  uint32_t first = 0;
  memcpy(&first, &bytes[after], sizeof(first));
  EXPECT_EQ(first, 1U);
  for (const bool is_signed : {false, true}) {
    for (const bool is_target : {false, true}) {
      const Function function{"/lib/a.so", "f", "f(int) 1", is_signed, is_target};
      EXPECT_EQ(decode_function(encode(function)).value(), function);
    }
  }
}

TEST(TaskRecord, NonsenseIsRefused) {
  const auto bytes = encode(some_task(), nullptr);
  const auto function = encode(Function{"/lib/a.so", "f", "f(int) 1", true});
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decode_task(std::span(bytes).first(length)).ok());
  for (size_t length = 0; length < function.size(); ++length)
    EXPECT_FALSE(decode_function(std::span(function).first(length)).ok());
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {  // whatever it says, no byte outside is read (the sanitizers would see that)
    auto wild = i % 2 == 0 ? bytes : function;
    const size_t at = sizeof(ResultRecord) + random() % (wild.size() - sizeof(ResultRecord));
    wild[at] = static_cast<uint8_t>(random());
    wild.shrink_to_fit();
    [[maybe_unused]] const bool task = decode_task(wild).ok(), name = decode_function(wild).ok();
  }
  auto bad = some_task();
  bad.ranges[0].address = UINT64_MAX - 5;
  EXPECT_FALSE(decode_task(encode(bad, nullptr)).ok());
  bad = some_task();
  bad.ranges[0].access = 4;
  EXPECT_FALSE(decode_task(encode(bad, nullptr)).ok());
  EXPECT_FALSE(decode_function(encode(Function{std::string("a\0b", 3), "f", "", false})).ok());
  auto flagged = function;
  const uint32_t unknown = 4;
  memcpy(&flagged[sizeof(ResultRecord) + offsetof(FunctionRecord, flags)], &unknown, sizeof(unknown));
  EXPECT_FALSE(decode_function(flagged).ok());
}

TEST(TaskRecord, AGateIsWholeOrRefused) {
  uint64_t at = 0;
  std::vector<uint8_t> gate = encode_gate(2, &at);
  const uint32_t after[2] = {7, kEndedWell};
  memcpy(&gate[at], after, sizeof(after));
  gate.resize(gate.size() + 9);  // what stands behind it
  EXPECT_EQ(decode_gate(gate).value(), std::vector<uint32_t>({7, kEndedWell}));
  for (size_t length = 0; length < at + sizeof(after); ++length)
    EXPECT_FALSE(decode_gate(std::span(gate).first(length)).ok()) << length;
  EXPECT_FALSE(decode_gate(encode_gate(0, &at)).ok());
  EXPECT_FALSE(decode_gate(encode_gate(OFFPATH_TASK_AFTER_MAX + 1, &at)).ok());
}

}  // namespace
}  // namespace offpath::tasks
