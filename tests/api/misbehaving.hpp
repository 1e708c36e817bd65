// SPDX-License-Identifier: BSD-3-Clause
// Tasks that do what is asked of them, wrong things among it.
#pragma once

#include "task.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace offpath::testing {

class Misbehaving {
 public:
  explicit Misbehaving(const Process& p) : session(p.attach()), tasks(session), folder_(p.folder) {
    void* memory_here = nullptr;
    REQUIRE_STATUS(offpath_memory_allocate(session, 4096, &memory_here), OFFPATH_OK);
    memory = static_cast<uint8_t*>(memory_here);
  }
  ~Misbehaving() {
    offpath_session_detach(session);
    for (uint32_t place = 0; place < kPlaces; ++place) unlink(file(place).c_str());
  }
  // It says by file(place) that it runs: memory may be a copy.
  offpath_op_t* submit(char how, uint32_t place = 0, uint64_t limit_ns = 0, std::vector<offpath_op_t*> after = {},
                       uint32_t access = OFFPATH_TASK_OUT, uint32_t flags = 0) {
    unlink(file(place).c_str());
    const offpath_task_range_t range{&memory[place], 1, access, 0};
    const std::string argument = how + file(place);
    offpath_task_params_t params = tasks.params("misbehave", &range);
    params.argument = argument.c_str();
    params.argument_bytes = argument.size() + 1;
    params.limit_ns = limit_ns;
    params.flags = flags;
    params.after = after.data();
    params.after_count = static_cast<uint32_t>(after.size());
    return tasks.submit(params);
  }
  bool has_begun(uint32_t place) const { return exists(file(place)); }
  void await_begin(uint32_t place = 0) const {
    REQUIRE(eventually([&] { return has_begun(place); }));
  }
  void forget_begin(uint32_t place = 0) const { unlink(file(place).c_str()); }
  // Its end; the text of its result says this.
  offpath_task_result_t check_end(offpath_op_t* op, offpath_status_t status, const char* says) {
    REQUIRE_STATUS(offpath_op_wait(op, kLongNs), status);
    offpath_task_result_t result{};
    result.struct_bytes = sizeof(result);
    REQUIRE_STATUS(offpath_task_result(op, &result), OFFPATH_OK);
    char text[400];
    offpath_op_describe(op, text, sizeof(text));
    if (strstr(result.text, says) == nullptr || strstr(text, says) == nullptr) fail_process(__FILE__, __LINE__, text);
    offpath_op_free(op);
    return result;
  }

  offpath_session_t* session;
  Tasks tasks;
  uint8_t* memory;

 private:
  static constexpr uint32_t kPlaces = 4;
  std::string file(uint32_t place) const { return folder_ + "-begun" + std::to_string(place); }
  const std::string folder_;
};

inline void with_executors(const char* count) {
  setenv("OFFPATH_TASK_EXECUTORS", count, 1);
  setenv("OFFPATH_TASK_CANCEL_MS", "20", 1);
}

inline void run_misbehaving(const char* executors, const std::function<void(Process&, Misbehaving&)>& body) {
  Job(1).run([&](Process& p) {
    with_executors(executors);
    Misbehaving tasks(p);
    body(p, tasks);
  });
}

}  // namespace offpath::testing
