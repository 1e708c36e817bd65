// SPDX-License-Identifier: BSD-3-Clause
#include "service/completion_count.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace offpath::service {
namespace {

TEST(CompletionCount, CountsWithoutGaps) {
  CompletionCount count;
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(count.begin(), i);
  count.end(1), count.end(3);
  EXPECT_EQ(count.completed(), 0U);
  count.end(0);
  EXPECT_EQ(count.completed(), 2U);
  EXPECT_EQ(count.begin(), 4U);
  count.end(2);
  EXPECT_EQ(count.completed(), 4U);
  count.end(4);
  EXPECT_EQ(count.completed(), 5U);
  EXPECT_EQ(count.begun(), 5U);
}

TEST(CompletionCount, InAnyOrder) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  CompletionCount count;
  std::vector<uint64_t> open;
  for (int round = 0; round < 20000; ++round) {
    if (open.empty() || random() % 2 == 0) {
      open.push_back(count.begin());
    } else {
      const size_t at = random() % open.size();
      count.end(open[at]);
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
    }
    ASSERT_EQ(count.completed(), open.empty() ? count.begun() : *std::min_element(open.begin(), open.end()));
  }
}

}  // namespace
}  // namespace offpath::service
