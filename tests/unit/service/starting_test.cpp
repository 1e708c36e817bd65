// SPDX-License-Identifier: BSD-3-Clause
#include "service/starting.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

namespace offpath::service {
namespace {

constexpr uid_t kNobody = 65534, kAnother = 65533;

// A job's service: a session of its own, and of a user where we may. It ends with us at the latest.
class Job {
 public:
  Job() {
    int lives[2], ready[2];
    EXPECT_TRUE(pipe(lives) == 0 && pipe(ready) == 0);
    process_ = fork();
    char byte;
    if (process_ == 0) {
      setsid();
      if (geteuid() == 0 && setuid(kAnother) != 0) _exit(1);
      for (const int fd : {lives[1], ready[0], ready[1]}) close(fd);
      _exit(read(lives[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(lives[0]), close(ready[1]);
    EXPECT_EQ(read(ready[0], &byte, 1), 0);  // until it is what it shall be
    close(ready[0]);
    lives_ = lives[1];
  }
  ~Job() {
    close(lives_);
    waitpid(process_, nullptr, 0);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  pid_t process() const { return process_; }

 private:
  pid_t process_;
  int lives_;
};

// test_packaging.py runs it once more as the unit of systemd contains it: other users' processes are hidden from users then.
TEST(Starting, JobsOfOtherUsersCount) {
  const Job job;
  EXPECT_EQ(jobs_of(getpid()), std::vector<pid_t>{job.process()});
  const auto user = geteuid() == 0 ? std::optional<uid_t>(kNobody) : std::nullopt;
  for (const uint32_t most : {1U, 2U}) {
    const StartingOptions options{{"/bin/echo", "line"}, "", false, most, getpid()};
    const auto answer = start_as(user, {}, options);
    EXPECT_EQ(answer.ok(), most > 1) << answer.status().text();
    if (!answer.ok()) {
      EXPECT_NE(std::string(answer.status().text()).find("serves 1 jobs already"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace offpath::service
