// SPDX-License-Identifier: BSD-3-Clause
#include "session/launch.hpp"

#include "base/environment.hpp"
#include "base/process.hpp"
#include "session/link.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

extern char** environ;

// The thread sanitizer's clone() ends a fork in parent and child. They are one memory here, so it would end twice, and this thread's locks
// and calls would not be seen from then on. This is the C library's.
#ifdef __SANITIZE_THREAD__
extern "C" int __clone(int (*)(void*), void*, int, void*, ...) noexcept;
#define clone __clone
#endif

namespace offpath::session {

using base::Environment;
using base::Fd;
using base::Result;
using base::Status;

namespace {

constexpr size_t kStackBytes = 64 << 10;

std::vector<std::string> wrapper_words() {
  std::string wrapper = Environment::text("OFFPATH_SERVICE_WRAPPER");
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  for (size_t at; (at = wrapper.find("%h")) != std::string::npos;) wrapper.replace(at, 2, host);
  return base::words_of(wrapper);
}

// Everything the new process needs, made before the clone: afterwards only system calls are allowed.
struct Launch {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  int listening = -1;
  int token = -1;
  int null_device = -1;
  uint8_t* stack = nullptr;
  volatile int error = 0;
  volatile pid_t process = 0;
};

// Not the C library's, before which sanitizers look back.
[[noreturn]] void leave(int status) {
  while (true) syscall(SYS_exit_group, status);
}

// Shares our memory, suspended parent: no allocation, no locks, no return.
int become_service(void* data) {
  auto* launch = static_cast<Launch*>(data);
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  rlimit limit{};  // the program may have used all that it may have
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  // Out of the way of the numbers below first.
  const int listening = fcntl(launch->listening, F_DUPFD, 10);
  const int token = fcntl(launch->token, F_DUPFD, 10);
  const int null_device = fcntl(launch->null_device, F_DUPFD, 10);
  if (listening < 0 || token < 0 || null_device < 0) {
    launch->error = errno;
    leave(127);
  }
  for (int fd = 0; fd < 3; ++fd) dup2(null_device, fd);
  dup2(listening, kListenFd);
  dup2(token, kTokenFd);
  base::close_from(kTokenFd + 1);
  execvpe(launch->arguments[0], launch->arguments.data(), launch->environment.data());
  launch->error = errno;
  leave(127);
}

int spawn_orphan(void* data) {
  auto* launch = static_cast<Launch*>(data);
  // Signal 0: nobody is told when it ends.
  launch->process = clone(become_service, launch->stack + kStackBytes, CLONE_VM | CLONE_VFORK, data);
  if (launch->process < 0) launch->error = errno;
  leave(0);
}

}  // namespace

Result<Fd> launch(std::vector<std::string> service, const std::string& socket_path, std::span<const uint8_t> token) {
  std::vector<std::string> words = wrapper_words();
  words.insert(words.end(), service.begin(), service.end());
  Launch launch;
  for (std::string& word : words) launch.arguments.push_back(word.data());
  launch.arguments.push_back(nullptr);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, "LD_PRELOAD=", 11) != 0) launch.environment.push_back(*entry);
  }
  launch.environment.push_back(nullptr);

  auto listening = listen_at(socket_path);
  if (!listening.ok()) return listening.status();
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot make a pipe");
  Fd token_read(pipe_fds[0]), token_write(pipe_fds[1]);
  if (write(token_write.get(), token.data(), token.size()) != static_cast<ssize_t>(token.size())) {
    return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot pass the job token");
  }
  token_write.reset();
  Fd null_device(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null_device.valid()) return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot open /dev/null");
  launch.listening = listening->get();
  launch.token = token_read.get();
  launch.null_device = null_device.get();
  void* stacks = mmap(nullptr, 2 * kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stacks == MAP_FAILED) return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot start the service");
  launch.stack = static_cast<uint8_t*>(stacks);
  const int child = clone(spawn_orphan, launch.stack + 2 * kStackBytes, CLONE_VM | CLONE_VFORK, &launch);
  const int clone_error = errno;
  if (child > 0) {
    while (waitpid(child, nullptr, __WALL) < 0 && errno == EINTR) {
    }
  }
  munmap(stacks, 2 * kStackBytes);
  const int error = child < 0 ? clone_error : launch.error;
  if (error != 0) {
    unlink(socket_path.c_str());
    return Status::system_error(OFFPATH_ERR_NO_SERVICE, error,
                                "cannot execute '%.80s' (it is the service that moves "
                                "the data). Install it, or set OFFPATH_SERVICE_PATH",
                                launch.arguments[0]);
  }
  return base::open_process(launch.process);
}

}  // namespace offpath::session
