// SPDX-License-Identifier: BSD-3-Clause
// Copies that stay for further tasks: who has one, and when it goes.
#include "service/tasks/kept.hpp"

#include <gtest/gtest.h>

namespace offpath::service {
namespace {

class Keeping : public ::testing::Test {
 protected:
  static Kept::Name name(uint64_t address, uint32_t version = 1, uint64_t client = 1) {
    return {client, address, 1000, version};
  }
  uint64_t fill(const Kept::Name& which) {
    const uint64_t place = room_.allocate(1000).value();
    kept_.add(which, place, room_);
    kept_.note_filled(which);
    return place;
  }
  void release(const Kept::Name& which, bool gone = false) { kept_.release(which, gone, room_); }

  device::Arena room_{64, 64 << 10};
  Kept kept_;
};

TEST_F(Keeping, OneCopyServesAllWhenItIsFilled) {
  EXPECT_FALSE(kept_.use(name(4096)));
  const uint64_t place = room_.allocate(1000).value();
  kept_.add(name(4096), place, room_);
  ASSERT_TRUE(kept_.use(name(4096)));
  EXPECT_FALSE(kept_.use(name(4096))->filled) << "who asks before counts as no user";
  kept_.note_filled(name(4096));
  EXPECT_TRUE(kept_.use(name(4096))->filled);
  EXPECT_EQ(kept_.use(name(4096))->place, place);
  EXPECT_FALSE(kept_.use(name(4096, 2)));
  EXPECT_FALSE(kept_.use(name(4096, 1, 2)));
  EXPECT_FALSE(kept_.drop_one(room_)) << "all are used";
  for (int i = 0; i < 3; ++i) release(name(4096));
  EXPECT_TRUE(kept_.use(name(4096))) << "it stays";
}

TEST_F(Keeping, WhatNobodyHasFilledGoes) {
  kept_.add(name(4096), room_.allocate(1000).value(), room_);
  release(name(4096));
  EXPECT_FALSE(kept_.use(name(4096)));
  EXPECT_EQ(room_.used(), 0U);
}

TEST_F(Keeping, AnotherVersionTakesItsPlaceOnceNobodyUsesIt) {
  fill(name(4096, 1));
  fill(name(4096, 2));
  EXPECT_TRUE(kept_.use(name(4096, 1))) << "a task still reads it";
  release(name(4096, 1));
  release(name(4096, 1));
  fill(name(4096, 3));
  EXPECT_FALSE(kept_.use(name(4096, 1)));
  EXPECT_TRUE(kept_.use(name(4096, 2)));
}

TEST_F(Keeping, RoomIsMadeOfTheOneThatWasNotUsedForLongest) {
  for (const uint64_t address : {4096, 8192, 12288}) {
    fill(name(address));
    release(name(address));
  }
  EXPECT_TRUE(kept_.use(name(4096)));
  release(name(4096));
  EXPECT_TRUE(kept_.drop_one(room_));
  EXPECT_FALSE(kept_.use(name(8192)));
  EXPECT_TRUE(kept_.drop_one(room_));
  EXPECT_FALSE(kept_.use(name(12288)));
  EXPECT_TRUE(kept_.drop_one(room_));
  EXPECT_FALSE(kept_.drop_one(room_));
  EXPECT_EQ(room_.used(), 0U);
}

TEST_F(Keeping, AClientTakesItsOwnAlong) {
  fill(name(4096));
  fill(name(8192));
  fill(name(4096, 1, 2));
  release(name(8192));
  kept_.remove_client(1, room_);
  EXPECT_FALSE(kept_.use(name(8192)));
  release(name(4096), true);
  EXPECT_FALSE(kept_.use(name(4096)));
  EXPECT_TRUE(kept_.use(name(4096, 1, 2)));
}

}  // namespace
}  // namespace offpath::service
