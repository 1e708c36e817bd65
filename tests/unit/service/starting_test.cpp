// SPDX-License-Identifier: BSD-3-Clause
#include "service/starting.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace offpath::service {
namespace {

constexpr uid_t kNobody = 65534, kAnother = 65533;

// A job's service: a session of its own, and of a user where we may.
pid_t start_job() {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    if (geteuid() == 0 && setuid(kAnother) != 0) _exit(1);
    close(ends[0]);
    close(ends[1]);
    for (;;) pause();
  }
  close(ends[1]);
  char byte;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);  // until it is what it shall be
  close(ends[0]);
  return child;
}

// test_packaging.py runs it once more as the unit of systemd contains it: other users' processes are hidden from users then.
TEST(Starting, JobsOfOtherUsersCount) {
  const pid_t job = start_job();
  EXPECT_EQ(jobs_of(getpid()), std::vector<pid_t>{job});
  const auto user = geteuid() == 0 ? std::optional<uid_t>(kNobody) : std::nullopt;
  for (const uint32_t most : {1U, 2U}) {
    const StartingOptions options{{"/bin/echo", "line"}, "", false, most, getpid()};
    const auto answer = start_as(user, {}, options);
    EXPECT_EQ(answer.ok(), most > 1) << answer.status().text();
    if (!answer.ok()) {
      EXPECT_NE(std::string(answer.status().text()).find("serves 1 jobs already"), std::string::npos);
    }
  }
  kill(job, SIGKILL);
  waitpid(job, nullptr, 0);
}

}  // namespace
}  // namespace offpath::service
