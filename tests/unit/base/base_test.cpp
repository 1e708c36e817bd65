// SPDX-License-Identifier: BSD-3-Clause
// base/: texts of errors, environment values, and errno left alone.
#include "base/bytes.hpp"
#include "base/environment.hpp"
#include "base/fd.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "base/silence.hpp"
#include "base/words.hpp"

#include "in_child.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace offpath::base {
namespace {

// ---- Bytes ------------------------------------------------------------------------------------------------------

TEST(Bytes, AreLittleEndianOnEveryProcessor) {
  uint8_t bytes[1 + 2 + 4 + 8 + 8] = {};
  ByteWriter writer(bytes);
  writer.number(uint8_t{0xfe});
  writer.number(int16_t{-2});
  writer.number(uint32_t{0x01020304});
  writer.number(int64_t{-3});
  writer.number(uint64_t{0xf1f2f3f4f5f6f7f8});
  const uint8_t expected[] = {0xfe, 0xfe, 0xff, 4,    3,    2,    1,    0xfd, 0xff, 0xff, 0xff, 0xff,
                              0xff, 0xff, 0xff, 0xf8, 0xf7, 0xf6, 0xf5, 0xf4, 0xf3, 0xf2, 0xf1};
  EXPECT_EQ(memcmp(bytes, expected, sizeof(bytes)), 0);
  ByteReader reader(bytes);
  EXPECT_EQ(reader.number<uint8_t>(), 0xfe);
  EXPECT_EQ(reader.number<int16_t>(), -2);
  EXPECT_EQ(reader.number<uint32_t>(), 0x01020304U);
  EXPECT_EQ(reader.number<int64_t>(), -3);
  EXPECT_EQ(reader.number<uint64_t>(), 0xf1f2f3f4f5f6f7f8U);
}

TEST(Bytes, TextsAreEndedAndPrintable) {
  uint8_t bytes[4];
  const char text[] = {'a', '\n', 'b', 'c'};  // not ended
  ByteWriter(bytes).text(text);
  char back[4];
  ByteReader(bytes).text(back);
  EXPECT_STREQ(back, "a b");
}

// ---- Status -----------------------------------------------------------------------------------------------------

TEST(Status, IsOkByDefault) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), OFFPATH_OK);
  EXPECT_STREQ(status.text(), "");
}

TEST(Status, NumbersFromOutsideBecomeResultsOnly) {
  EXPECT_EQ(known_code(0), OFFPATH_OK);
  for (int number = -1; number >= kLastError; --number) EXPECT_EQ(known_code(number), number);
  for (const int number : {1, 2, kLastError - 1, -100, INT32_MIN, INT32_MAX}) {
    EXPECT_EQ(known_code(number), OFFPATH_ERR_INTERNAL) << number;
  }
}

TEST(Status, FormatsItsText) {
  const Status status = Status::error(OFFPATH_ERR_ARGUMENT, "rank %u of %s", 7U, "team");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), OFFPATH_ERR_ARGUMENT);
  EXPECT_STREQ(status.text(), "rank 7 of team");
}

TEST(Status, CutsALongTextAndKeepsTheEnd) {
  const std::string longest(5000, 'x');
  const Status status = Status::error(OFFPATH_ERR_INTERNAL, "%s", longest.c_str());
  EXPECT_EQ(strlen(status.text()), sizeof(offpath_error_t::text) - 1);
  const Status system = Status::system_error(OFFPATH_ERR_INTERNAL, ENOENT, "%s", longest.c_str());
  EXPECT_EQ(strlen(system.text()), sizeof(offpath_error_t::text) - 1);
  const std::string almost(sizeof(offpath_error_t::text) - 5, 'y');
  const Status cut = Status::system_error(OFFPATH_ERR_INTERNAL, ENOENT, "%s", almost.c_str());
  EXPECT_EQ(strlen(cut.text()), sizeof(offpath_error_t::text) - 1);
}

TEST(Status, SystemErrorAppendsTheReason) {
  const Status status = Status::system_error(OFFPATH_ERR_NO_SERVICE, ENOENT, "cannot open %s", "this");
  EXPECT_STREQ(status.text(), "cannot open this: No such file or directory");
  const Status unknown = Status::system_error(OFFPATH_ERR_NO_SERVICE, 987654, "cannot open %s", "this");
  EXPECT_EQ(std::string(unknown.text()).rfind("cannot open this: ", 0), 0U);
}

TEST(Status, IsCopiedToTheCallersStorage) {
  offpath_error_t out;
  memset(&out, 0xAB, sizeof(out));
  Status::error(OFFPATH_ERR_NO_MEMORY, "no room").copy_to(&out);
  EXPECT_EQ(out.status, OFFPATH_ERR_NO_MEMORY);
  EXPECT_STREQ(out.text, "no room");
  Status::error(OFFPATH_ERR_NO_MEMORY, "no room").copy_to(nullptr);
}

TEST(Status, EveryCodeHasItsOwnText) {
  std::set<std::string> texts;
  for (int code = kLastError; code <= OFFPATH_IN_PROGRESS; ++code) {
    const char* text = offpath_status_string(static_cast<offpath_status_t>(code));
    ASSERT_NE(text, nullptr);
    EXPECT_STRNE(text, "unknown status") << code;
    texts.insert(text);
  }
  EXPECT_EQ(texts.size(), static_cast<size_t>(2 - kLastError));
  EXPECT_STREQ(offpath_status_string(static_cast<offpath_status_t>(2)), "unknown status");
}

TEST(Result, HoldsAValueOrAnError) {
  Result<std::string> good(std::string("v"));
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(good->size(), 1U);
  const Result<std::string> bad(Status::error(OFFPATH_ERR_STATE, "no"));
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().code(), OFFPATH_ERR_STATE);
}

TEST(ErrnoGuard, LeavesNoTrace) {
  errno = 42;
  {
    const ErrnoGuard guard;
    errno = 7;
  }
  EXPECT_EQ(errno, 42);
}

// ---- Environment ------------------------------------------------------------------------------------------------
// In a child: the first problem is kept for the life of the process.

constexpr const char* kName = "OFFPATH_TEST_VALUE";

uint64_t number_from(const char* value) {
  setenv(kName, value, 1);
  return Environment::number(kName, 77, 1, 1000);
}

TEST(Environment, NumbersInRangeAreTaken) {
  in_child([] {
    unsetenv(kName);
    EXPECT_EQ(Environment::number(kName, 77, 1, 1000), 77U);
    EXPECT_EQ(Environment::text(kName), "");
    for (const auto& [text, value] : {std::pair("1", 1U), {"1000", 1000U}, {"", 77U}, {"007", 7U}}) {
      EXPECT_EQ(number_from(text), value) << text;
    }
    EXPECT_TRUE(Environment::problem().ok());
  });
}

TEST(Environment, EverythingElseGivesTheDefaultAndIsRemembered) {
  for (const char* bad : {"0", "1001", "-1", "12x", "x", "1.5", "99999999999999999999999", "5 ",
                          "-18446744073709551611", " -18446744073709551611", "0x10"}) {
    in_child([bad] {
      EXPECT_EQ(number_from(bad), 77U) << bad;
      const Status problem = Environment::problem();
      EXPECT_EQ(problem.code(), OFFPATH_ERR_ARGUMENT) << bad;
      EXPECT_NE(strstr(problem.text(), kName), nullptr) << problem.text();
      EXPECT_NE(strstr(problem.text(), "from 1 to 1000"), nullptr) << problem.text();
    });
  }
}

TEST(Environment, OnlyTheFirstProblemIsKept) {
  in_child([] {
    number_from("first");
    number_from("second");
    EXPECT_NE(strstr(Environment::problem().text(), "first"), nullptr);
    number_from("3");
    EXPECT_FALSE(Environment::problem().ok());
  });
}

TEST(Environment, Flags) {
  in_child([] {
    unsetenv(kName);
    EXPECT_TRUE(Environment::flag(kName, true));
    EXPECT_FALSE(Environment::flag(kName, false));
    for (const char* yes : {"1", "yes", "ON", "True"}) {
      setenv(kName, yes, 1);
      EXPECT_TRUE(Environment::flag(kName, false)) << yes;
    }
    for (const char* no : {"0", "no", "OFF", "False"}) {
      setenv(kName, no, 1);
      EXPECT_FALSE(Environment::flag(kName, true)) << no;
    }
    EXPECT_TRUE(Environment::problem().ok());
    setenv(kName, "2", 1);
    EXPECT_TRUE(Environment::flag(kName, true));
    EXPECT_FALSE(Environment::problem().ok());
  });
}

// ---- the rest ---------------------------------------------------------------------------------------------------

TEST(Process, CommandsAreWordsOrAProgramBesideThisOne) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words_of("  qemu  -L root program "), (Words{"qemu", "-L", "root", "program"}));
  EXPECT_EQ(words_of("one", "other"), Words{"one"});
  EXPECT_EQ(words_of(" "), Words{});
  EXPECT_EQ(words_of("", "other"), Words{own_folder() + "other"});
}

TEST(Random, DiffersEachTime) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 100; ++i) seen.insert(random_u64());
  EXPECT_EQ(seen.size(), 100U);
}

TEST(Log, WritesWholeLinesOfTheChosenLevels) {
  in_child([] {
    char path[] = "/tmp/offpath-log-XXXXXX";
    const Fd file(mkstemp(path));
    EXPECT_TRUE(log_open(path, LogLevel::info));
    log_write(LogLevel::debug, "hidden");
    log_write(LogLevel::warn, "%s", std::string(2000, 'z').c_str());
    log_write(LogLevel::info, "second");
    char text[2048] = "";
    const ssize_t got = pread(file.get(), text, sizeof(text) - 1, 0);
    unlink(path);
    EXPECT_GT(got, 0);
    EXPECT_EQ(strstr(text, "hidden"), nullptr);
    EXPECT_NE(strstr(text, "warn: zzz"), nullptr);
    EXPECT_NE(strstr(text, "z\n"), nullptr) << "a cut line still ends";
    EXPECT_NE(strstr(text, "info: second\n"), nullptr);
    EXPECT_FALSE(log_open("/nonexistent/log", LogLevel::info));
  });
}

TEST(SilenceTest, AsksNowAndThenAndIsPatientForTheLimit) {
  using Verdict = Silence::Verdict;
  Silence silence(8000);
  uint64_t now = 1000000, asked = 0;
  bool answered = false;
  for (int i = 0; i < 1000; ++i, now += 100) {
    const Verdict verdict = silence.look(now, answered);
    ASSERT_NE(verdict, Verdict::silent);
    answered = verdict == Verdict::ask;
    asked += answered ? 1 : 0;
  }
  EXPECT_GT(asked, 50U);
  EXPECT_LT(asked, 101U);
  while (silence.look(now += 100, false) != Verdict::ask) {
  }
  const uint64_t since = now;
  while (silence.look(now += 100, false) != Verdict::silent) {
  }
  EXPECT_EQ(now - since, 8000U);
}

// A process that was stopped itself, or that looks rarely, has heard nothing meanwhile.
TEST(SilenceTest, TimeThatNobodyLookedAtDoesNotCount) {
  using Verdict = Silence::Verdict;
  Silence silence(8000);
  uint64_t now = 1000000;
  while (silence.look(now += 1000, false) != Verdict::ask) {
  }
  for (int looks = 0; looks < 3; ++looks) EXPECT_EQ(silence.look(now += 1000000, false), Verdict::wait);
  EXPECT_EQ(silence.look(now += 1000000, false), Verdict::silent);
}

TEST(SilenceTest, WithoutALimitNobodyIsSilent) {
  Silence silence(0);
  for (uint64_t now = 1; now < 100; ++now) EXPECT_EQ(silence.look(now * 1000000000, false), Silence::Verdict::wait);
}

}  // namespace
}  // namespace offpath::base
