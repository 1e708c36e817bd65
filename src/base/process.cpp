// SPDX-License-Identifier: BSD-3-Clause
#include "base/process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>

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

void close_from(int first) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, first, ~0U, 0) == 0) return;
#endif
  for (int fd = first; fd < 4096; ++fd) close(fd);  // before Linux 5.9
}

bool is_stopped(pid_t child) {
  siginfo_t about{};
  return child > 0 && waitid(P_PID, static_cast<id_t>(child), &about, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         about.si_pid == child;
}

std::optional<Kinship> kinship_of(pid_t process) {
  const std::string text = text_of_file("/proc/" + std::to_string(process) + "/stat");
  const size_t name_end = text.rfind(')');  // "number (name) state parent group session ...": names may hold anything
  Kinship kin{};
  if (name_end == std::string::npos ||
      sscanf(text.c_str() + name_end + 1, " %c %d %*d %d", &kin.state, &kin.parent, &kin.session) != 3)
    return std::nullopt;
  return kin;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  DIR* const processes = opendir("/proc");
  for (const dirent* entry; processes != nullptr && (entry = readdir(processes)) != nullptr;) {
    const auto process = static_cast<pid_t>(strtol(entry->d_name, nullptr, 10));
    if (process <= 0) continue;
    if (const auto kin = kinship_of(process); kin && kin->parent == parent) children.push_back(process);
  }
  if (processes != nullptr) closedir(processes);
  return children;
}

std::string text_of_file(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char part[4096];
  while (file.valid()) {
    const ssize_t got = read(file.get(), part, sizeof(part));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(part, static_cast<size_t>(got));
  }
  return text;
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
