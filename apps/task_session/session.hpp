// SPDX-License-Identifier: BSD-3-Clause
// A rank's session with Offpath, for programs whose work is tasks of one function: memory that they use in place, and the tasks
// themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <offpath/offpath.h>

namespace task_session {

// The function, and the shared object that it is in: beside the program, if it is a name without a folder.
struct Function {
  const char* program;  // who says what went wrong
  const char* library;
  const char* symbol;
  const char* signature;
};

template <class T>
struct Shared {
  T* at = nullptr;
  std::size_t capacity = 0;
};

class Session {
 public:
  // On all ranks, as the end of it is. `problem`: empty, or one line for the user.
  Session(const Function& function, std::string& problem);
  ~Session();
  Session(Session&& other) noexcept;
  Session& operator=(Session&&) = delete;

  // Without memory the program ends, as with `new`.
  void* allocate(std::size_t bytes);
  // What it held is lost if it grows.
  template <class T>
  void reserve(Shared<T>& memory, std::size_t count) {
    if (count <= memory.capacity) return;
    offpath_memory_free(session_, memory.at);
    memory.capacity = count + count / 4;
    memory.at = static_cast<T*>(allocate(memory.capacity * sizeof(T)));
  }
  // cost_ns: how long it will run; 0: not known. flags: OFFPATH_TASK_...
  template <class Argument, std::size_t kRanges>
  void submit(const Argument& argument, const offpath_task_range_t (&ranges)[kRanges], std::uint64_t cost_ns = 0,
              std::uint32_t flags = 0) {
    post(&argument, sizeof argument, ranges, kRanges, cost_ns, flags);
  }
  // For all that were submitted; returns the seconds that their functions took. A task that failed ends the program, with a line that
  // says how.
  double wait();
  // Nothing is under way.
  bool idle() const;
  // Executors work on copies: the service is on another machine.
  bool copies() const { return offpath_session_shares_memory(session_) == 0; }
  // The process that ran the last one that was waited for; 0: one on another node.
  std::uint32_t executor() const { return executor_; }
  // Ends the program.
  [[noreturn]] void give_up(const char* what, const char* how) const;
  // The rank begins to wait for others in MPI, or has waited.
  void note_wait(bool begins);

 private:
  void meet(std::string& problem);
  static bool all_good(std::string& problem);
  void post(const void* argument, std::size_t bytes, const offpath_task_range_t* ranges, std::size_t ranges_count,
            std::uint64_t cost_ns, std::uint32_t flags);

  const char* program_;
  offpath_session_t* session_ = nullptr;
  offpath_team_t* team_ = nullptr;
  offpath_function_t* function_ = nullptr;
  std::vector<offpath_op_t*> ops_;
  std::uint64_t waits_since_ns_ = 0;
  std::uint32_t executor_ = 0;
};

}  // namespace task_session
