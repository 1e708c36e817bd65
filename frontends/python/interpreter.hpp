// SPDX-License-Identifier: BSD-3-Clause
// A Python interpreter that is a child of the executor, hears what it shall do on a socket, and stays for the next task. One thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace offpath::python {

// Memory of the executor that the interpreter can map, too, so that nothing of it is copied: a file that this process has mapped
// and still holds open.
class Board {
 public:
  // The one in which `inside` lies. Without such a file it holds nothing.
  explicit Board(const void* inside);
  int fd() const { return fd_; }
  bool holds(const void* from, uint64_t bytes) const;
  uint64_t offset_of(const void* from) const;

 private:
  uintptr_t begin_ = 0, end_ = 0;
  uint64_t offset_ = 0;
  int fd_ = -1;
};

class Interpreter {
 public:
  // Of `words`, its command line, each ended by '\0': that of the last task, if it had the same. OFFPATH_TASK_PYTHON here names
  // the interpreter, else it is the program's where that is there, else python3. False: it cannot be started, and errno says why.
  bool begin(const std::string& words, const Board& board);
  // False: it has ended, or nobody wants the result any more.
  bool say(const void* from, uint64_t bytes, const volatile uint32_t* cancelled) const;
  bool hear(void* into, uint64_t bytes, const volatile uint32_t* cancelled) const;
  // Its wait status.
  int end();

 private:
  bool await(short events, const volatile uint32_t* cancelled) const;
  bool is_stopped() const;

  std::string words_;
  pid_t process_ = -1;
  int socket_ = -1;
};

}  // namespace offpath::python
