// SPDX-License-Identifier: BSD-3-Clause
// What is known of the functions of tasks: their numbers, what stands on the board, and how long they take.
#include "service/tasks/functions.hpp"

#include <gtest/gtest.h>

#include <string>

namespace offpath::service {
namespace {

tasks::Function named(const std::string& symbol) { return {"lib.so", symbol, "", false, false}; }

tasks::Task task_of(uint32_t function, uint64_t said_ns = 0) {
  tasks::Task task;
  task.function = function;
  task.cost_ns = said_ns;
  return task;
}

class KnownFunctions : public ::testing::Test {
 protected:
  Room room_{std::move(tasks::Board::create(64 << 10, 1).value())};
  Functions functions_{room_};
};

TEST_F(KnownFunctions, EachHasOneNumberUnderWhichExecutorsFindIt) {
  ASSERT_EQ(functions_.number_of(named("f")).value(), 0U);
  ASSERT_EQ(functions_.number_of(named("g")).value(), 1U);
  EXPECT_EQ(functions_.number_of(named("f")).value(), 0U);
  auto checked = named("f");
  checked.is_signed = true;
  checked.signature = "double";
  EXPECT_EQ(functions_.number_of(checked).value(), 2U) << "another one, as it is checked";
  const tasks::Board& board = room_.board();
  EXPECT_STREQ(board.text(board.function(1).library), "lib.so");
  EXPECT_STREQ(board.text(board.function(1).symbol), "g");
  EXPECT_EQ(board.function(1).signature, 0U);
  EXPECT_STREQ(board.text(board.function(2).signature), "double");
  EXPECT_EQ(functions_[1].symbol, "g");
  EXPECT_TRUE(functions_.knows(2));
  EXPECT_FALSE(functions_.knows(3));
}

TEST_F(KnownFunctions, WithoutRoomForItsNameItIsRefused) {
  const auto number = functions_.number_of(named(std::string(64 << 10, 'f')));
  EXPECT_EQ(number.status().code(), OFFPATH_ERR_NO_MEMORY);
  EXPECT_FALSE(functions_.knows(0));
}

TEST_F(KnownFunctions, ACostIsWhatWasMeasuredElseWhatWasSaid) {
  const uint32_t function = functions_.number_of(named("f")).value();
  EXPECT_EQ(functions_.cost_of(task_of(function)), 0U);
  EXPECT_EQ(functions_.cost_of(task_of(function, 500)), 500U);
  functions_.note_run(task_of(function), 4000);
  EXPECT_EQ(functions_.cost_of(task_of(function)), 4000U);
  functions_.note_run(task_of(function, 1000), 4000);  // it takes four times of what is said
  EXPECT_EQ(functions_.cost_of(task_of(function, 500)), 2000U);
  const uint32_t other = functions_.number_of(named("g")).value();
  EXPECT_EQ(functions_.cost_of(task_of(other)), 0U) << "of that one nothing is known";
}

}  // namespace
}  // namespace offpath::service
