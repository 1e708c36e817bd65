// SPDX-License-Identifier: BSD-3-Clause
// Connections of a process that are reset from outside, as by a failing switch.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>

namespace offpath {

// All of its TCP connections that stand. How many.
inline int break_connections(pid_t pid) {
  constexpr int kDescriptors = 1024;
  const int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  int broken = 0;
  for (int number = 0; process >= 0 && number < kDescriptors; ++number) {
    const int copy = static_cast<int>(syscall(SYS_pidfd_getfd, process, number, 0));
    sockaddr_storage other{};
    socklen_t bytes = sizeof(other);
    const bool stands = copy >= 0 && getpeername(copy, reinterpret_cast<sockaddr*>(&other), &bytes) == 0 &&
                        (other.ss_family == AF_INET || other.ss_family == AF_INET6);
    const sockaddr nobody{AF_UNSPEC, {}};
    if (stands && connect(copy, &nobody, sizeof(nobody)) == 0) ++broken;
    if (copy >= 0) close(copy);
  }
  if (process >= 0) close(process);
  return broken;
}

}  // namespace offpath
