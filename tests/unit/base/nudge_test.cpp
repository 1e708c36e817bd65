// SPDX-License-Identifier: BSD-3-Clause
#include "base/nudge.hpp"

#include <gtest/gtest.h>

namespace offpath::base {
namespace {

class NudgeTest : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the sanitizer does not survive UCX's hook in a thread that ends";
#endif
  }
};

TEST_F(NudgeTest, ComesOncePerSetting) {
  Nudge nudge;
  ASSERT_TRUE(nudge.start([] {}).ok());
  for (uint64_t i = 1; i <= 3; ++i) {
    nudge.note_sleep();
    nudge.set();
    while (nudge.times() < i) std::this_thread::yield();
  }
  nudge.cancel();
  EXPECT_EQ(nudge.times(), 3U);
}

TEST_F(NudgeTest, EndsWithOneToCome) {
  Nudge nudge;
  ASSERT_TRUE(nudge.start([] {}).ok());
  nudge.note_sleep();
  nudge.set();
}

TEST(Nudge, IsNothingUntilItIsStarted) {
  Nudge nudge;
  nudge.note_sleep();
  nudge.set();
  nudge.cancel();
  EXPECT_EQ(nudge.times(), 0U);
}

}  // namespace
}  // namespace offpath::base
