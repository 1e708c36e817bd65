// SPDX-License-Identifier: BSD-3-Clause
// An executor of the test's own, without a service.
#pragma once

#include "device/device.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

class ExecutorProcess {
 public:
  explicit ExecutorProcess(const std::string& channel, uint64_t memory = 64 << 20) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return;
    socket_ = offpath::base::Fd(pair[0]);
    process_ = fork();
    if (process_ == 0) {
      fcntl(pair[1], F_SETFD, 0);
      const std::string fd = std::to_string(pair[1]), bytes = std::to_string(memory);
      execl(OFFPATH_TEST_EXECUTOR, "offpath-executor", "--socket-fd", fd.c_str(), "--channel", channel.c_str(),
            "--memory", bytes.c_str(), "--spin-us", "20", nullptr);
      _exit(127);
    }
    close(pair[1]);
  }
  ~ExecutorProcess() {
    socket_.reset();
    if (process_ > 0) waitpid(process_, nullptr, 0);  // hangs where an executor outlives its channel
  }
  offpath::base::Fd take_socket() { return std::move(socket_); }
  void kill_it() const { kill(process_, SIGKILL); }
  void stop_it() const {
    kill(process_, SIGSTOP);
    waitpid(process_, nullptr, WUNTRACED);
  }
  void let_it_go_on() const { kill(process_, SIGCONT); }

 private:
  offpath::base::Fd socket_;
  pid_t process_ = -1;
};

inline std::vector<uint8_t> test_image() {
  std::ifstream file(OFFPATH_TEST_IMAGE, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
