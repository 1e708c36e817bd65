// SPDX-License-Identifier: BSD-3-Clause
// The task function "python": hands a task to a Python interpreter, a child of the executor that stays for the next ones.
//
// Argument: [u32 bytes of words][words, each ended by '\0': the interpreter's command line][u8 per range: 1, mapped by the
// interpreter itself][what it shall do]. The last one is not looked at here (python/offpath/tasks/worker.py).
// The program may run on another machine: OFFPATH_TASK_PYTHON here names the interpreter, else it is the program's where
// that is there, else python3.
#include <offpath/task.h>

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
#include <string>
#include <vector>

namespace {

constexpr int kLookMs = 20;  // so often a wait looks whether the task was cancelled
constexpr int kStoppedLooks = 50;
constexpr int kSocket = 3;  // of the interpreter
constexpr int kBoard = 4;
constexpr int32_t kNotCalled = 5;  // the interpreter says why not, and nothing follows

struct Asked {
  uint32_t ranges_count;
  uint32_t reserved;
  uint64_t wanted_bytes;
};

// Where the interpreter finds a range.
enum class Where : uint32_t {
  program = 0,  // in memory of the program that it maps itself
  sent = 1,     // its bytes follow, if it is read, and are wanted back, if it is written
  board = 2     // on the executor's board, which it maps, too
};

struct AskedRange {
  uint64_t bytes;
  uint64_t offset;  // on the board
  uint32_t access;
  Where where;
};

struct Answered {
  int32_t code;
  uint32_t text_bytes;
};

// The board is a file that this process has mapped and still holds open: whoever maps it, too, needs no copies.
class Board {
 public:
  explicit Board(const void* inside) {
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
  int fd() const { return fd_; }
  bool holds(const void* from, uint64_t bytes) const {
    const auto at = reinterpret_cast<uintptr_t>(from);
    return fd_ >= 0 && at >= begin_ && at <= end_ && bytes <= end_ - at;
  }
  uint64_t offset_of(const void* from) const { return reinterpret_cast<uintptr_t>(from) - begin_ + offset_; }

 private:
  static constexpr int kMostDescriptors = 256;
  uintptr_t begin_ = 0, end_ = 0;
  uint64_t offset_ = 0;
  int fd_ = -1;
};

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

class Interpreter {
 public:
  // False: it cannot be started.
  bool begin(const std::string& words, const Board& board) {
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

  bool say(const void* from, uint64_t bytes, const volatile uint32_t* cancelled) const {
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

  // False: it has ended, or nobody wants the result any more.
  bool hear(void* into, uint64_t bytes, const volatile uint32_t* cancelled) const {
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

  // Its wait status.
  int end() {
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

 private:
  // False: nobody wants the result any more.
  bool await(short events, const volatile uint32_t* cancelled) const {
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

  bool is_stopped() const {
    siginfo_t about{};
    return waitid(P_PID, static_cast<id_t>(process_), &about, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
           about.si_pid == process_;
  }

  std::string words_;
  pid_t process_ = -1;
  int socket_ = -1;
};

Interpreter& interpreter() {
  static auto* one = new Interpreter;  // it ends with the executor
  return *one;
}

int fail(const offpath_task_t& task, const char* text, int status) {
  if (WIFSIGNALED(status) && *task.cancelled == 0) {
    snprintf(task.message, task.message_bytes, "%s was ended by signal %d (%s)", text, WTERMSIG(status),
             strsignal(WTERMSIG(status)));
  } else {
    snprintf(task.message, task.message_bytes, "%s has ended with status %d", text, WEXITSTATUS(status));
  }
  return 2;
}

// What lies on the board is a copy, also of what the program says that others can map: its service may be another one by now.
Where where_is(const offpath_task_t& task, uint32_t i, const uint8_t* mapped, const Board& board) {
  if (board.holds(task.ranges[i].address, task.ranges[i].bytes)) return Where::board;
  return mapped[i] != 0 ? Where::program : Where::sent;
}

// All that is short leaves at once, so the interpreter wakes once.
bool ask(const offpath_task_t& task, const std::vector<Where>& places, const Board& board, const uint8_t* wanted,
         uint64_t wanted_bytes) {
  const Asked asked{task.ranges_count, 0, wanted_bytes};
  std::string said(reinterpret_cast<const char*>(&asked), sizeof(asked));
  said.append(reinterpret_cast<const char*>(wanted), wanted_bytes);
  for (uint32_t i = 0; i < task.ranges_count; ++i) {
    const offpath_task_range_t& range = task.ranges[i];
    const AskedRange one{range.bytes, places[i] == Where::board ? board.offset_of(range.address) : 0, range.access,
                         places[i]};
    said.append(reinterpret_cast<const char*>(&one), sizeof(one));
  }
  if (!interpreter().say(said.data(), said.size(), task.cancelled)) return false;
  for (uint32_t i = 0; i < task.ranges_count; ++i) {
    const offpath_task_range_t& range = task.ranges[i];
    const bool follows = places[i] == Where::sent && (range.access & OFFPATH_TASK_IN) != 0;
    if (follows && !interpreter().say(range.address, range.bytes, task.cancelled)) return false;
  }
  return true;
}

bool take(const offpath_task_t& task, const std::vector<Where>& places, int32_t& code) {
  Answered answered{};
  if (!interpreter().hear(&answered, sizeof(answered), task.cancelled)) return false;
  std::string text(answered.text_bytes, '\0');
  if (!interpreter().hear(text.data(), text.size(), task.cancelled)) return false;
  for (uint32_t i = 0; i < task.ranges_count && answered.code != kNotCalled; ++i) {
    const offpath_task_range_t& range = task.ranges[i];
    const bool comes = places[i] == Where::sent && (range.access & OFFPATH_TASK_OUT) != 0;
    if (comes && !interpreter().hear(range.address, range.bytes, task.cancelled)) return false;
  }
  snprintf(task.message, task.message_bytes, "%s", text.c_str());
  code = answered.code;
  return true;
}

int python(const offpath_task_t* task) {
  uint32_t words_bytes = 0;
  const auto* argument = static_cast<const uint8_t*>(task->argument);
  if (task->argument_bytes >= sizeof(words_bytes)) memcpy(&words_bytes, argument, sizeof(words_bytes));
  const uint64_t before = sizeof(words_bytes) + uint64_t{words_bytes} + task->ranges_count;
  const char* words = reinterpret_cast<const char*>(argument) + sizeof(words_bytes);
  if (words_bytes == 0 || task->argument_bytes < before || words[words_bytes - 1] != '\0') {
    snprintf(task->message, task->message_bytes, "its argument was not made by offpath.task()");
    return 3;
  }
  static const Board board(argument);  // arguments lie there
  if (!interpreter().begin(std::string(words, words_bytes), board)) {
    snprintf(task->message, task->message_bytes, "cannot execute '%.150s': %s", words, strerror(errno));
    return 4;
  }
  const uint8_t* mapped = argument + sizeof(words_bytes) + words_bytes;
  std::vector<Where> places;
  for (uint32_t i = 0; i < task->ranges_count; ++i) places.push_back(where_is(*task, i, mapped, board));
  int32_t code = 0;
  // One that cannot begin says so, and hears nothing.
  [[maybe_unused]] const bool asked = ask(*task, places, board, argument + before, task->argument_bytes - before);
  if (take(*task, places, code)) return code;
  return fail(*task, "its Python interpreter", interpreter().end());
}

}  // namespace

// The number is that of what is said here and in python/offpath/tasks: another one with each change (letters.PROTOCOL).
OFFPATH_TASK_FUNCTION(python, "python 2");
