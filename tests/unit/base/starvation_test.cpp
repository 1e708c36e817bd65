// SPDX-License-Identifier: BSD-3-Clause
// What the kernel says of a thread, made up, and what follows for who waits for it.
#include "base/silence.hpp"
#include "base/starvation.hpp"

#include <gtest/gtest.h>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace offpath::base {
namespace {

constexpr uint64_t kSecondNs = 1000000000;

class StarvationTest : public ::testing::Test {
 protected:
  StarvationTest() { say('R', 0, 5); }
  ~StarvationTest() override { std::filesystem::remove_all(proc); }

  // `ran_ms`: most of it in the kernel.
  void say(char state, uint64_t ran_ms, uint64_t slept) const {
    const auto ticks = ran_ms * static_cast<uint64_t>(sysconf(_SC_CLK_TCK)) / 1000;
    std::ofstream(thread + "stat") << "9 (a name) R 1 (b) " << state << " 1 7 7 0 -1 4194368 8 0 0 0 " << ticks / 4
                                   << ' ' << ticks - ticks / 4 << " 0 0 20 0 3 0 12345 0 0\n";
    std::ofstream(thread + "status") << "Name:\ta\nState:\t" << state << "\nnonvoluntary_ctxt_switches:\t77\n"
                                     << std::string(5000, 'x') << "\nvoluntary_ctxt_switches:\t" << slept
                                     << "\nnonvoluntary_ctxt_switches:\t77\n";
  }
  uint64_t after(uint64_t seconds) { return starvation.since_last_ns(now_ns += seconds * kSecondNs); }

  static std::string make_folder() {
    char name[] = "/tmp/offpath-starvation-XXXXXX";
    const std::string folder = mkdtemp(name);
    std::filesystem::create_directories(folder + "/7/task/9");
    return folder;
  }
  const std::string proc = make_folder(), thread = proc + "/7/task/9/";
  uint64_t now_ns = kSecondNs;
  Starvation starvation{7, 9, proc};
};

TEST_F(StarvationTest, IsReadinessWithoutAProcessor) {
  EXPECT_EQ(after(1), 0U);  // the first look
  EXPECT_EQ(after(10), 10 * kSecondNs);
  say('R', 1000, 5);
  EXPECT_EQ(after(10), 9 * kSecondNs);
  EXPECT_EQ(after(3), 3 * kSecondNs);
}

TEST_F(StarvationTest, IsNotToRunForMostOfTheTime) {
  after(1);
  say('R', 5000, 5);
  EXPECT_EQ(after(10), 0U);
  say('R', 15000, 5);
  EXPECT_EQ(after(10), 0U);
}

TEST_F(StarvationTest, IsNotToSleepOrToBeStopped) {
  for (const char state : {'S', 'D', 'T', 't', 'Z', 'X', 'I'}) {
    say('R', 0, 5);
    after(1);
    say(state, 0, 5);
    EXPECT_EQ(after(10), 0U) << state;
    EXPECT_EQ(after(10), 0U) << state;
    say('R', 0, 5);
    EXPECT_EQ(after(10), 0U) << state;  // in the middle of being woken, perhaps
    EXPECT_EQ(after(10), 10 * kSecondNs) << state;
  }
}

TEST_F(StarvationTest, IsNotToHaveSleptBetweenTwoLooks) {
  after(1);
  say('R', 0, 6);
  EXPECT_EQ(after(10), 0U);
}

TEST_F(StarvationTest, IsOfNobodyWhoCannotBeSeen) {
  after(1);
  std::filesystem::remove(thread + "status");
  EXPECT_EQ(after(10), 0U);
  for (const std::string text : {"", "9 (a", "9 (a) ", "9 (a) R", "9 (a) R\n", "9"}) {
    say('R', 0, 5);
    std::ofstream(thread + "stat") << text;
    after(1);
    after(1);
  }
  Starvation none, elsewhere(8, 9, proc), unsaid(7, 0, proc);
  for (Starvation* const other : {&none, &elsewhere, &unsaid}) {
    EXPECT_EQ(other->since_last_ns(1), 0U);
    EXPECT_EQ(other->since_last_ns(kSecondNs), 0U);
  }
}

TEST_F(StarvationTest, OfTheThreadThatAsksIsKnown) {
  Starvation own(getpid(), static_cast<pid_t>(syscall(SYS_gettid)));
  EXPECT_EQ(own.since_last_ns(kSecondNs), 0U);
  const uint64_t before = own_waits_ns();
  sched_yield();
  EXPECT_GE(own_waits_ns(), before);
}

// From the question to the verdict, with a limit of eight seconds.
class StarvedSilence : public StarvationTest {
 protected:
  using Verdict = Silence::Verdict;
  Verdict look(bool answered = false) {
    now_ns += kSecondNs / 2;
    return silence.look(now_ns, answered, [&] { return ++asked_kernel, starvation.since_last_ns(now_ns); });
  }
  Verdict verdict(int looks) {
    Verdict last = Verdict::wait;
    while (last != Verdict::silent && last != Verdict::starved && looks-- > 0) last = look();
    return last;
  }
  Silence silence{8 * kSecondNs};
  int asked_kernel = 0;
};

TEST_F(StarvedSilence, EndsNobodyForAsLongAsItLasts) {
  for (int i = 0; i < 100; ++i) ASSERT_EQ(verdict(100), Verdict::starved);
  say('R', 0, 6);  // it ran, and sleeps now and then, but gives no answer
  EXPECT_EQ(verdict(100), Verdict::silent);
}

TEST_F(StarvedSilence, DoesNotHideWhoIsStoppedLater) {
  ASSERT_EQ(verdict(100), Verdict::starved);
  say('T', 0, 6);
  EXPECT_EQ(verdict(100), Verdict::silent);
}

TEST_F(StarvedSilence, EndsWithTheAnswer) {
  ASSERT_EQ(verdict(100), Verdict::starved);
  look(true);
  EXPECT_EQ(silence.unanswered_ns(), 0U);
}

// It shares its core with others: what it runs counts, and in the end that is the limit.
TEST_F(StarvedSilence, OfOneThatLoopsIsFoundInTheEnd) {
  uint64_t ran_ms = 0;
  Verdict last = Verdict::wait;
  int looks = 0;
  for (; last != Verdict::silent && looks < 1000; ++looks) {
    say('R', ran_ms += 125, 5);  // a quarter of a core
    last = look();
  }
  EXPECT_EQ(last, Verdict::silent);
  EXPECT_LT(looks, 100);
}

TEST_F(StarvedSilence, AsksTheKernelNothingWhileAnswersCome) {
  bool answered = false;
  for (int i = 0; i < 1000; ++i) answered = look(answered) == Verdict::ask;
  EXPECT_EQ(asked_kernel, 0);
}

// The next time, and once.
TEST(SparedSilence, OfOneThatSaidItWasStarvedIsLonger) {
  for (const auto& [said, spared] : {std::pair(0U, 0U), std::pair(16000U, 16000U), std::pair(9000000U, 24000U)}) {
    Silence silence(8000);
    silence.note_starved(said);
    silence.note_starved(0);
    EXPECT_EQ(silence.spares(), said != 0);
    silence.rest();
    for (const uint64_t more : {spared, 0U}) {
      uint64_t now = 1;
      while (silence.look(now += 100, false) != Silence::Verdict::ask) {
      }
      const uint64_t since = now;
      while (silence.look(now += 100, false) != Silence::Verdict::silent) {
      }
      EXPECT_EQ(now - since, 8000U + more);
      silence.rest();
    }
  }
}

TEST(OwnWaits, AreToldOnce) {
  uint64_t so_far = 70;
  OwnWaits waits([&] { return so_far; });
  EXPECT_EQ(waits.since_told_ns(), 70U);
  so_far = 75;
  EXPECT_EQ(waits.since_told_ns(), 5U);
  EXPECT_EQ(waits.since_told_ns(), 0U);
}

}  // namespace
}  // namespace offpath::base
