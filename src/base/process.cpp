// SPDX-License-Identifier: BSD-3-Clause
#include "base/process.hpp"

#include <sys/syscall.h>

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

}  // namespace offpath::base
