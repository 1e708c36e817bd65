// SPDX-License-Identifier: BSD-3-Clause
// A rank's session with Offpath: memory that tasks use in place, and the tasks themselves.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <offpath/offpath.h>

#include "forces.hpp"

namespace minimd {

template <class T>
struct Shared {
  T* at = nullptr;
  std::size_t capacity = 0;
};

class TaskSession {
 public:
  // On all ranks. `problem`: empty, or one line for the user.
  explicit TaskSession(std::string& problem);
  ~TaskSession();
  TaskSession(TaskSession&& other) noexcept;
  TaskSession& operator=(TaskSession&&) = delete;

  // What it held is lost if it grows. Without memory the program ends, as with `new`.
  template <class T>
  void reserve(Shared<T>& memory, std::size_t count) {
    if (count <= memory.capacity) return;
    release(memory.at);
    memory.capacity = count + count / 4;
    memory.at = static_cast<T*>(allocate(memory.capacity * sizeof(T)));
  }
  void submit(const ForcesArgument& argument, const offpath_task_range_t* ranges);
  // For all that were submitted. A task that failed ends the program, with a line that says how.
  void wait();

 private:
  void* allocate(std::size_t bytes);
  void release(void* memory) { offpath_memory_free(session_, memory); }

  offpath_session_t* session_ = nullptr;
  offpath_function_t* function_ = nullptr;
  std::vector<offpath_op_t*> ops_;
};

}  // namespace minimd
