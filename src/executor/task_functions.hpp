// SPDX-License-Identifier: BSD-3-Clause
// The functions of tasks that this executor has loaded.
#pragma once

#include "base/result.hpp"
#include "tasks/board.hpp"

#include <offpath/task.h>

#include <map>
#include <string>
#include <vector>

namespace offpath::executor {

struct TaskFunction {
  offpath_task_function_t call = nullptr;
};

class TaskFunctions {
 public:
  explicit TaskFunctions(const tasks::Board& board) : board_(board), loaded_(tasks::kMaxFunctions) {}
  // Loads what the board says under that number, once.
  base::Result<TaskFunction> find(uint32_t number);

 private:
  base::Result<TaskFunction> load(const tasks::FunctionPlace& place);
  // The loaded code for devices of that file that has the symbol, or one that declares it.
  base::Result<void*> device_code(const std::string& file, const std::string& symbol);

  const tasks::Board& board_;
  std::vector<TaskFunction> loaded_;
  std::map<std::string, std::vector<void*>> device_code_;  // by file
};

}  // namespace offpath::executor
