// SPDX-License-Identifier: BSD-3-Clause
// Room on a board: copies that stay for further tasks (who has one, and when it goes), and what an engine may touch.
#include "service/tasks/room.hpp"

#include <gtest/gtest.h>

namespace offpath::service {
namespace {

constexpr uint64_t kBytes = 64 << 10;

class Keeping : public ::testing::Test {
 protected:
  static Room::Name name(uint64_t address, uint32_t version = 1, uint64_t client = 1) {
    return {client, address, 1000, version};
  }
  Room::Kept& fill(const Room::Name& which) {
    Room::Kept& copy = room_.keep(which, room_.reserve(1000).value());
    copy.filled = true;
    return copy;
  }
  void release(Room::Kept& copy) { room_.release(Room::Piece{0, copy.place, &copy}); }

  Room room_{std::move(tasks::Board::create(kBytes, 1).value())};
};

TEST_F(Keeping, OneCopyServesAllWhenItIsFilled) {
  EXPECT_EQ(room_.use(name(4096)), nullptr);
  Room::Kept& copy = room_.keep(name(4096), room_.reserve(1000).value());
  ASSERT_EQ(room_.use(name(4096)), &copy);
  EXPECT_EQ(copy.users, 1U) << "who asks before counts as no user";
  copy.filled = true;
  EXPECT_EQ(room_.use(name(4096)), &copy);
  EXPECT_EQ(room_.use(name(4096, 2)), nullptr);
  EXPECT_EQ(room_.use(name(4096, 1, 2)), nullptr);
  EXPECT_FALSE(room_.reserve(kBytes)) << "all are used";
  for (int i = 0; i < 2; ++i) release(copy);
  EXPECT_EQ(room_.use(name(4096)), &copy) << "it stays";
}

TEST_F(Keeping, WhatNobodyHasFilledGoes) {
  release(room_.keep(name(4096), room_.reserve(1000).value()));
  EXPECT_EQ(room_.use(name(4096)), nullptr);
  EXPECT_EQ(room_.used(), 0U);
}

TEST_F(Keeping, AnotherVersionTakesItsPlaceOnceNobodyUsesIt) {
  Room::Kept& first = fill(name(4096, 1));
  fill(name(4096, 2));
  EXPECT_EQ(room_.use(name(4096, 1)), &first) << "a task still reads it";
  release(first);
  release(first);
  fill(name(4096, 3));
  EXPECT_EQ(room_.use(name(4096, 1)), nullptr);
  EXPECT_NE(room_.use(name(4096, 2)), nullptr);
}

TEST_F(Keeping, RoomIsMadeOfTheOneThatWasNotUsedForLongest) {
  for (const uint64_t address : {4096, 8192, 12288}) release(fill(name(address)));
  release(*room_.use(name(4096)));
  ASSERT_TRUE(room_.reserve(kBytes - 3 * 1024)) << "the rest";
  ASSERT_TRUE(room_.reserve(1000));
  EXPECT_EQ(room_.use(name(8192)), nullptr);
  ASSERT_TRUE(room_.reserve(1000));
  EXPECT_EQ(room_.use(name(12288)), nullptr);
  Room::Kept* last = room_.use(name(4096));
  ASSERT_NE(last, nullptr);
  EXPECT_FALSE(room_.reserve(1000)) << "it is used";
  release(*last);
  ASSERT_TRUE(room_.reserve(1000));
  EXPECT_EQ(room_.used(), kBytes);
}

TEST_F(Keeping, AClientTakesItsOwnAlong) {
  Room::Kept& read = fill(name(4096));
  Room::Kept& unused = fill(name(8192));
  fill(name(4096, 1, 2));
  release(unused);
  room_.remove_client(1);
  EXPECT_EQ(room_.use(name(8192)), nullptr);
  release(read);
  EXPECT_EQ(room_.use(name(4096)), nullptr);
  EXPECT_NE(room_.use(name(4096, 1, 2)), nullptr);
}

TEST_F(Keeping, AnEngineReachesNothingElseOfTheBoard) {
  uint64_t value = 7;
  EXPECT_TRUE(room_.memory()->write(tasks::kRoomOffset + kBytes - 8, &value, 8).ok());
  value = 0;
  EXPECT_TRUE(room_.memory()->read(&value, tasks::kRoomOffset + kBytes - 8, 8).ok());
  EXPECT_EQ(value, 7U);
  EXPECT_FALSE(room_.memory()->write(tasks::kRoomOffset - 8, &value, 8).ok());
  EXPECT_FALSE(room_.memory()->read(&value, tasks::kRoomOffset + kBytes - 4, 8).ok());
}

}  // namespace
}  // namespace offpath::service
