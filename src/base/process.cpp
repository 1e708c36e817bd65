// SPDX-License-Identifier: BSD-3-Clause
#include "base/process.hpp"

#include <sys/syscall.h>
#include <unistd.h>

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

std::string own_folder() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  const std::string text(path, length > 0 ? static_cast<size_t>(length) : 0);
  return text.substr(0, text.rfind('/') + 1);
}

}  // namespace offpath::base
