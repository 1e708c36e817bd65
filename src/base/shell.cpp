// SPDX-License-Identifier: BSD-3-Clause
#include "base/shell.hpp"

#include <spawn.h>
#include <unistd.h>

namespace offpath::base {

Result<pid_t> start_shell(const std::string& command, const Fd& input, const Fd& output, const Fd& error) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.get(), 0);
  posix_spawn_file_actions_adddup2(&actions, output.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, error.get(), 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::string shell = "sh", flag = "-c", text = command;
  char* words[] = {shell.data(), flag.data(), text.data(), nullptr};
  pid_t process = -1;
  const int number = posix_spawn(&process, "/bin/sh", &actions, &attributes, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (number != 0) return Status::system_error(OFFPATH_ERR_NO_SERVICE, number, "cannot execute /bin/sh");
  return process;
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace offpath::base
