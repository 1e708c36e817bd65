// SPDX-License-Identifier: BSD-3-Clause
// The task function "python": hands a task to a Python interpreter, a child of the executor that stays for the next ones.
//
// Argument: [u32 bytes of words][words, each ended by '\0': the interpreter's command line][u8 per range: 1, mapped by the
// interpreter itself][what it shall do]. The last one is not looked at here (python/offpath/tasks/worker.py).
#include "python/interpreter.hpp"

#include <offpath/task.h>

#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

using offpath::python::Board;
using offpath::python::Interpreter;

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
