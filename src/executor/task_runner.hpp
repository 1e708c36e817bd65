// SPDX-License-Identifier: BSD-3-Clause
// TaskRunner: an executor of tasks: takes them from its worker's board, one at a time, until the service ends.
#pragma once

#include "base/fd.hpp"
#include "executor/task_functions.hpp"
#include "tasks/board.hpp"

#include <chrono>
#include <map>
#include <memory>

namespace offpath::executor {

struct TaskOptions {
  int board = -1;   // descriptor of the board
  int bell = -1;    // eventfd of the worker
  int socket = -1;  // ClientMemory comes there
  uint32_t number = 0;
  std::chrono::microseconds spin{0};
  uint64_t memory_bytes = 0;  // most that functions may allocate; 0: no limit
};

class TaskRunner {
 public:
  explicit TaskRunner(const TaskOptions& options) : options_(options), bell_(options.bell), socket_(options.socket) {}
  ~TaskRunner();
  base::Status open();
  // Returns when its socket is closed.
  void serve();

 private:
  struct Mapping {
    uint8_t* data;
    uint64_t bytes;
  };
  bool hear();
  void forget(uint64_t client);
  void run(uint32_t index);
  base::Status call(tasks::Entry& entry, int32_t& code, uint64_t& run_ns);
  base::Result<offpath_task_range_t> reach(const tasks::Reach& range);
  void ring_bell() const;

  TaskOptions options_;
  base::Fd bell_, socket_;
  std::unique_ptr<tasks::Board> board_;
  std::unique_ptr<TaskFunctions> functions_;
  std::map<uint64_t, Mapping> clients_;
};

}  // namespace offpath::executor
