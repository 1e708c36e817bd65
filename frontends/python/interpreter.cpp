// SPDX-License-Identifier: BSD-3-Clause
#include "python/interpreter.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace offpath::python {
namespace {

constexpr int kLookMs = 20;  // so often a wait looks whether the task was cancelled
constexpr int kStoppedLooks = 50;
constexpr int kSocket = 3;  // of the interpreter
constexpr int kBoard = 4;
constexpr int kMostDescriptors = 256;  // looked at for the board's

// In the child that becomes the interpreter: descriptors in their places, and no way to outlive this process, not even while it
// starts. Only what may be called behind a fork. Returns where it fails.
void become(char* const* words, int socket, int board, pid_t executor) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != executor) _exit(1);
  if (dup2(socket, kSocket) < 0 || (board >= 0 && dup2(board, kBoard) < 0)) return;
  execvp(words[0], words);
}

// 0, or why it cannot be started.
int start(char* const* words, int socket, int board, pid_t& process) {
  int said[2];
  if (pipe2(said, O_CLOEXEC) != 0) return errno;
  const pid_t executor = getpid();
  process = fork();
  int error = process < 0 ? errno : 0;
  if (process == 0) {
    become(words, socket, board, executor);
    error = errno;
    [[maybe_unused]] const ssize_t written = write(said[1], &error, sizeof(error));
    _exit(127);
  }
  close(said[1]);
  while (process > 0 && read(said[0], &error, sizeof(error)) < 0 && errno == EINTR) {
  }
  close(said[0]);
  if (process > 0 && error != 0) waitpid(process, nullptr, 0);
  return error;
}

}  // namespace

Board::Board(const void* inside) {
  FILE* maps = fopen("/proc/self/maps", "re");
  const auto address = reinterpret_cast<uintptr_t>(inside);
  char line[512];
  while (maps != nullptr && fgets(line, sizeof(line), maps) != nullptr) {
    unsigned long begin = 0, end = 0, offset = 0, inode = 0;
    unsigned major_number = 0, minor_number = 0;
    const int read =
        sscanf(line, "%lx-%lx %*s %lx %x:%x %lu", &begin, &end, &offset, &major_number, &minor_number, &inode);
    if (read != 6 || address < begin || address >= end) continue;
    begin_ = begin;
    end_ = end;
    offset_ = offset;
    for (int fd = 3; fd < kMostDescriptors && fd_ < 0; ++fd) {
      struct stat about {};
      const bool same =
          fstat(fd, &about) == 0 && about.st_ino == inode && about.st_dev == makedev(major_number, minor_number);
      if (same) fd_ = fd;
    }
  }
  if (maps != nullptr) fclose(maps);
}

bool Board::holds(const void* from, uint64_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(from);
  return fd_ >= 0 && at >= begin_ && at <= end_ && bytes <= end_ - at;
}

uint64_t Board::offset_of(const void* from) const { return reinterpret_cast<uintptr_t>(from) - begin_ + offset_; }

bool Interpreter::begin(const std::string& words, const Board& board) {
  if (process_ > 0 && words == words_) return true;
  end();
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  std::vector<char*> arguments;
  words_ = words;
  for (size_t at = 0; at < words_.size(); at += strlen(&words_[at]) + 1) arguments.push_back(&words_[at]);
  arguments.push_back(nullptr);
  static char usual[] = "python3";
  if (char* own = secure_getenv("OFFPATH_TASK_PYTHON"); own != nullptr && *own != '\0') {
    arguments[0] = own;
  } else if (strchr(arguments[0], '/') != nullptr && access(arguments[0], X_OK) != 0) {
    arguments[0] = usual;
  }
  const int high = fcntl(ends[1], F_DUPFD_CLOEXEC, kBoard + 1);  // to itself it would stay closed on exec
  const int high_board = fcntl(board.fd(), F_DUPFD_CLOEXEC, kBoard + 1);
  const int error = start(arguments.data(), high, high_board, process_);
  close(high);
  close(high_board);
  close(ends[1]);
  socket_ = ends[0];
  if (error != 0) {
    process_ = -1;
    end();
    errno = error;
    return false;
  }
  return true;
}

bool Interpreter::say(const void* from, uint64_t bytes, const volatile uint32_t* cancelled) const {
  const auto* at = static_cast<const uint8_t*>(from);
  while (bytes > 0) {
    if (!await(POLLOUT, cancelled)) return false;
    const ssize_t sent = send(socket_, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<uint64_t>(sent);
  }
  return true;
}

bool Interpreter::hear(void* into, uint64_t bytes, const volatile uint32_t* cancelled) const {
  auto* at = static_cast<uint8_t*>(into);
  while (bytes > 0) {
    if (!await(POLLIN, cancelled)) return false;
    const ssize_t got = recv(socket_, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<uint64_t>(got);
  }
  return true;
}

int Interpreter::end() {
  int status = 0;
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  if (process_ > 0) {
    // One that ended by itself keeps how it did; the others are busy.
    for (int i = 0; i < 10 && waitpid(process_, &status, WNOHANG) == 0; ++i) usleep(1000);
    kill(process_, SIGKILL);
    waitpid(process_, &status, 0);
  }
  process_ = -1;
  return status;
}

// False: nobody wants the result any more.
bool Interpreter::await(short events, const volatile uint32_t* cancelled) const {
  int stopped_looks = 0;
  while (*cancelled == 0) {
    pollfd wait{socket_, events, 0};
    const int ready = poll(&wait, 1, kLookMs);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
    stopped_looks = is_stopped() ? stopped_looks + 1 : 0;
    // The worker looks after executors alone: it ends one that stays stopped, and with it its interpreter.
    if (stopped_looks > kStoppedLooks) raise(SIGSTOP);
  }
  return false;
}

bool Interpreter::is_stopped() const {
  siginfo_t about{};
  return waitid(P_PID, static_cast<id_t>(process_), &about, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         about.si_pid == process_;
}

}  // namespace offpath::python
