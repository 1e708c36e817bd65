// SPDX-License-Identifier: BSD-3-Clause
#include "client/mapping.hpp"

#include <gtest/gtest.h>

namespace offpath::client {
namespace {

TEST(Mapping, LeavesLargePagesToTheProgram) {
  constexpr uint64_t kAny = UINT64_MAX, kShort = (2 << 20) - 1;
  const char* const never = "always within_size advise [never] deny force";
  EXPECT_EQ(longest_without_loss("[always] madvise never", never), kShort);
  EXPECT_EQ(longest_without_loss("[always] madvise never", "always within_size [advise] never deny force"), kShort);
  EXPECT_EQ(longest_without_loss("[always] madvise never", ""), kShort);
  EXPECT_EQ(longest_without_loss("[always] madvise never", "[always] within_size advise never deny force"), kAny);
  EXPECT_EQ(longest_without_loss("[always] madvise never", "always [within_size] advise never deny force"), kAny);
  EXPECT_EQ(longest_without_loss("always [madvise] never", never), kAny);
  EXPECT_EQ(longest_without_loss("always madvise [never]", never), kAny);
  EXPECT_EQ(longest_without_loss("", ""), kAny);
}

}  // namespace
}  // namespace offpath::client
