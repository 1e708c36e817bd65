// SPDX-License-Identifier: BSD-3-Clause
#include "service/in_flight.hpp"

#include <gtest/gtest.h>

namespace offpath::service {
namespace {

TEST(InFlight, FindsTheOldestWhateverItsSlot) {
  InFlight operations;
  EXPECT_FALSE(operations.oldest().has_value());
  operations.begin(7, 100);
  operations.begin(3, 100);  // of the same tick of the clock
  operations.begin(1023, 200);
  EXPECT_EQ(operations.oldest(), 7U);
  operations.end(7, 300);
  EXPECT_EQ(operations.oldest(), 3U);
  EXPECT_EQ(operations.since_ns(3), 100U);
  operations.begin(7, 400);
  EXPECT_EQ(operations.oldest(), 3U);
  EXPECT_EQ(operations.count(), 3U);
  EXPECT_EQ(operations.posted(), 4U);
}

TEST(InFlight, TimeWithAnyIsCountedOnce) {
  InFlight operations;
  operations.begin(0, 100);
  operations.begin(1, 150);
  EXPECT_EQ(operations.progress_ns(180), 80U);
  operations.end(0, 200);
  operations.end(1, 300);
  EXPECT_EQ(operations.progress_ns(1000), 200U);
  operations.begin(0, 1000);
  EXPECT_EQ(operations.progress_ns(1010), 210U);
}

// What a client that submits a slot twice brings about.
TEST(InFlight, BeginningTwiceIsOnce) {
  InFlight operations;
  operations.begin(5, 1);
  operations.begin(5, 2);
  EXPECT_EQ(operations.count(), 1U);
  operations.end(5, 3);
  operations.end(5, 4);
  EXPECT_EQ(operations.count(), 0U);
  EXPECT_EQ(operations.progress_ns(9), 2U);
}

}  // namespace
}  // namespace offpath::service
