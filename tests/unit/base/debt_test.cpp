// SPDX-License-Identifier: BSD-3-Clause
#include "base/debt.hpp"

#include <gtest/gtest.h>

namespace offpath::base {
namespace {

constexpr uint64_t kUs = 1000;

struct Thread {
  uint64_t now_ns = 0, cpu_ns = 0;
  Debt debt;
  void run(uint64_t ns) { now_ns += ns, cpu_ns += ns; }
  void sleep(uint64_t ns) { now_ns += ns; }
  uint64_t left() { return debt.left_ns(now_ns, cpu_ns); }
};

TEST(Debt, IsWhatWasRunAndALittle) {
  Thread thread;
  thread.run(100 * kUs);
  EXPECT_EQ(thread.left(), 125 * kUs + Debt::kMarginNs);
  thread.sleep(100 * kUs);
  thread.run(4 * kUs);
  EXPECT_EQ(thread.left(), 5 * kUs + Debt::kMarginNs);
}

TEST(Debt, IsPaidBySleepAndByWaitingForTheCore) {
  Thread thread;
  thread.run(100 * kUs);
  thread.left();
  thread.sleep(60 * kUs);
  thread.run(20 * kUs);
  EXPECT_EQ(thread.left(), 75 * kUs + Debt::kMarginNs);
  thread.sleep(1000 * kUs);
  EXPECT_EQ(thread.left(), Debt::kMarginNs);
}

TEST(Debt, HasAnEnd) {
  Thread thread;
  thread.run(100'000 * kUs);
  EXPECT_EQ(thread.left(), Debt::kLongestNs + Debt::kLongestNs / 4 + Debt::kMarginNs);
  thread.cpu_ns += kUs;  // two clocks are never read at the same time
  EXPECT_LE(thread.left(), Debt::kLongestNs + Debt::kLongestNs / 4 + Debt::kMarginNs);
}

}  // namespace
}  // namespace offpath::base
