// SPDX-License-Identifier: BSD-3-Clause
#include "base/process.hpp"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <csignal>

namespace offpath::base {

Fd open_process(pid_t process) {
#ifdef SYS_pidfd_open
  return Fd(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
#else
  return {};
#endif
}

void kill_process(const Fd& descriptor, pid_t process) {
#ifdef SYS_pidfd_send_signal
  if (descriptor.valid()) {
    syscall(SYS_pidfd_send_signal, descriptor.get(), SIGKILL, nullptr, 0);
    return;
  }
#endif
  if (process > 1) kill(process, SIGKILL);
}

bool is_stopped(pid_t child) {
  siginfo_t about{};
  return child > 0 && waitid(P_PID, static_cast<id_t>(child), &about, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         about.si_pid == child;
}

std::string own_folder() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  const std::string text(path, length > 0 ? static_cast<size_t>(length) : 0);
  return text.substr(0, text.rfind('/') + 1);
}

std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin < command.size();) {
    const size_t end = std::min(command.find(' ', begin), command.size());
    if (end > begin) words.push_back(command.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::vector<std::string> words_of(const std::string& command, const std::string& beside) {
  return command.empty() ? std::vector<std::string>{own_folder() + beside} : words_of(command);
}

}  // namespace offpath::base
