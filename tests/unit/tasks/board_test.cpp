// SPDX-License-Identifier: BSD-3-Clause
// The board: each task is taken once, whoever takes, gives up or takes away; and offsets that lie.
#include "tasks/board.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

namespace offpath::tasks {
namespace {

Board make() { return std::move(Board::create(1 << 20, 4).value()); }

TEST(Board, EachTaskIsDoneOnceOrTakenAway) {
  constexpr uint32_t kTakers = 3, kTasks = 20000;
  const Board board = make();
  std::vector<std::atomic<uint32_t>> done(kTasks);
  std::atomic<bool> stop{false};
  std::vector<std::thread> takers;
  for (uint32_t number = 0; number < kTakers; ++number) {
    takers.emplace_back([&, number] {
      while (!stop) {
        const uint32_t seen = board.header().posted.load();
        const auto index = board.take(number);
        if (!index) {
          if (!stop) board.sleep(seen);
          continue;
        }
        const uint32_t task = board.entry(*index).function;
        if (board.finish(*index, number)) ++done[task];  // else its result is nobody's
      }
    });
  }
  std::vector<uint32_t> free;
  for (uint32_t index = 0; index < kEntries; ++index) free.push_back(index);
  std::vector<bool> running(kEntries);
  uint32_t posted = 0, taken_away = 0, finished = 0;
  while (finished + taken_away < kTasks) {
    while (!free.empty() && posted < kTasks && board.has_room()) {
      const uint32_t index = free.back();
      board.entry(index).function = posted;
      board.entry(index).word.store(word_of(State::ready), std::memory_order_release);
      ASSERT_TRUE(board.post(index));
      free.pop_back();
      running[index] = true;
      board.wake_executors(1);
      std::optional<uint32_t> executor;
      if (++posted % 7 == 0 && board.take_away(index, executor)) {
        // That of a taker is not used for another one before its taker may have seen that.
        ++taken_away;
        running[index] = false;
        if (!executor) {
          board.entry(index).word.store(word_of(State::free), std::memory_order_release);
          free.push_back(index);
        }
      }
    }
    for (uint64_t bits = board.take_finished(); bits != 0; bits &= bits - 1) {
      const auto index = static_cast<uint32_t>(__builtin_ctzll(bits));
      ASSERT_TRUE(running[index]);
      ASSERT_EQ(state_of(board.entry(index).word.load()), State::done);
      running[index] = false;
      board.entry(index).word.store(word_of(State::free), std::memory_order_release);
      free.push_back(index);
      ++finished;
    }
    if (free.empty() && std::none_of(running.begin(), running.end(), [](bool one) { return one; })) {
      for (uint32_t index = 0; index < kEntries; ++index) free.push_back(index);  // all were taken away from takers
    }
  }
  stop = true;
  board.post(kNoEntry);
  board.wake_executors(kTakers);
  for (std::thread& taker : takers) taker.join();
  uint32_t total = 0;
  for (const auto& one : done) {
    EXPECT_LE(one.load(), 1U);
    total += one;
  }
  EXPECT_EQ(total, finished);
}

TEST(Board, OffsetsThatLie) {
  const Board board = make();
  for (const uint64_t offset : {uint64_t{0}, kRoomOffset - 1, board.bytes(), board.bytes() + 1, UINT64_MAX}) {
    EXPECT_EQ(board.room(offset, 1), nullptr) << offset;
    EXPECT_EQ(board.text(offset), nullptr) << offset;
  }
  EXPECT_EQ(board.room(board.bytes() - 8, 9), nullptr);
  EXPECT_EQ(board.room(kRoomOffset, UINT64_MAX), nullptr);
  EXPECT_NE(board.room(board.bytes() - 8, 8), nullptr);
  memset(board.room(board.bytes() - 8, 8), 'x', 8);
  EXPECT_EQ(board.text(board.bytes() - 8), nullptr);  // it does not end
  board.header().ring[0] = kEntries + 5;
  board.header().posted = 1;
  EXPECT_EQ(board.take(0), std::nullopt);
  EXPECT_EQ(board.header().taken, 1U);
  EXPECT_FALSE(Board::adopt(base::Fd(dup(0))).ok());
  board.header().magic = 0;
  EXPECT_FALSE(Board::adopt(base::Fd(dup(board.fd()))).ok());
}

}  // namespace
}  // namespace offpath::tasks
