// SPDX-License-Identifier: BSD-3-Clause
#include "service/tasks/executors.hpp"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

// The process runs to its end before who has started it goes on: the order of two processes that is never met otherwise.
extern "C" int posix_spawnp(pid_t* process, const char* file, const posix_spawn_file_actions_t* actions,
                            const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  const auto spawn = reinterpret_cast<decltype(&posix_spawnp)>(dlsym(RTLD_NEXT, "posix_spawnp"));
  const int error = spawn(process, file, actions, attributes, arguments, environment);
  siginfo_t about{};
  if (error == 0) waitid(P_PID, static_cast<id_t>(*process), &about, WEXITED | WNOWAIT);
  return error;
}

namespace offpath::service {
namespace {

TEST(Executors, OneThatIsReplacedKnowsTheClientsBeforeItsFirstTask) {
  std::string program = testing::TempDir() + "executorXXXXXX";
  base::Fd file(mkstemp(program.data()));
  std::ofstream(program) << "#!/bin/bash\nread -t 0 -u 5  # 0: something was said\n";
  fchmod(file.get(), 0700);
  file.reset();
  auto board = tasks::Board::create(1 << 20, 1);
  ASSERT_TRUE(board.ok());
  const base::Fd bell(eventfd(0, EFD_CLOEXEC)), memory(eventfd(0, EFD_CLOEXEC));
  Executors executors({1, program}, board.value(), bell.get());
  executors.add_client(1, memory.get(), 4096);
  ASSERT_TRUE(executors.start_all().ok());
  int32_t signal = 0;
  EXPECT_EQ(executors.take_last_words(0, signal), "its executor has ended with status 0");
  ASSERT_TRUE(executors.replace(0));
  EXPECT_EQ(executors.take_last_words(0, signal), "its executor has ended with status 0");
  unlink(program.c_str());
}

}  // namespace
}  // namespace offpath::service
