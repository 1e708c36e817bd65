// SPDX-License-Identifier: BSD-3-Clause
// What tests of tasks have at hand: the functions of task_functions.c.
#pragma once

#include "job.hpp"

#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace offpath::testing {

inline constexpr const char* kFunctions = OFFPATH_TEST_FUNCTIONS;

inline bool on_dpu() { return getenv("OFFPATH_TEST_DPU") != nullptr; }

class Tasks {
 public:
  explicit Tasks(offpath_session_t* session) : session_(session) {}

  offpath_function_t* function(const std::string& name) {
    offpath_function_t*& known = functions_[name];
    if (known != nullptr) return known;
    const std::string signature = name + " 1";
    offpath_function_params_t params{sizeof(params), 0, kFunctions, name.c_str(),
                                     name == "plain" ? nullptr : signature.c_str()};
    offpath_error_t error{};
    if (offpath_function_register(session_, &params, &known, &error) != OFFPATH_OK)
      fail_process(__FILE__, __LINE__, error.text);
    return known;
  }

  // The range stays where it is until it is submitted.
  offpath_task_params_t params(const std::string& name, const offpath_task_range_t* range = nullptr) {
    offpath_task_params_t params{};
    params.struct_bytes = sizeof(params);
    params.function = function(name);
    params.ranges = range;
    params.ranges_count = range != nullptr ? 1 : 0;
    return params;
  }

  // Adds `amount` to doubles. Both stay where they are until it is submitted.
  offpath_task_params_t plain(const double& amount, const offpath_task_range_t& range) {
    offpath_task_params_t out = params("plain", &range);
    out.argument = &amount;
    out.argument_bytes = sizeof(amount);
    return out;
  }

  offpath_op_t* submit(const offpath_task_params_t& params) {
    offpath_op_t* op = nullptr;
    REQUIRE_STATUS(offpath_task_submit(session_, &params, &op), OFFPATH_OK);
    return op;
  }

  offpath_status_t run(const offpath_task_params_t& params) {
    offpath_op_t* op = submit(params);
    return finish(op);
  }

 private:
  offpath_session_t* session_;
  std::map<std::string, offpath_function_t*> functions_;
};

// Tasks on a few blocks, each after all that it shares memory with; half of the handles freed at once. Serial reference.
inline void run_random_graph(offpath_session_t* session, uint32_t seed, uint32_t tasks_count) {
  Tasks tasks(session);
  constexpr uint32_t kBlocks = 12, kBytes = 500;
  void* memory = nullptr;
  REQUIRE_STATUS(offpath_memory_allocate(session, kBlocks / 2 * kBytes, &memory), OFFPATH_OK);
  std::vector<uint8_t> own(kBlocks / 2 * kBytes), expected(kBlocks * kBytes);
  memset(memory, 0, own.size());
  const auto block = [&](uint32_t i) {
    return (i % 2 == 0 ? static_cast<uint8_t*>(memory) : own.data()) + size_t{i / 2} * kBytes;
  };
  std::mt19937 random(seed);
  struct User {
    uint32_t task;
    bool writes;
  };
  std::vector<std::vector<User>> users(kBlocks);
  std::vector<offpath_op_t*> ops;
  for (uint32_t number = 0; number < tasks_count; ++number) {
    const uint8_t argument = static_cast<uint8_t>(random());
    std::vector<offpath_task_range_t> ranges;
    std::vector<offpath_op_t*> after;
    std::vector<uint32_t> named;
    unsigned sum = argument;
    for (uint32_t i = 0; i < kBlocks; ++i) {
      if (random() % 5 != 0) continue;
      const uint32_t access = 1 + random() % 3;
      const bool writes = access != OFFPATH_TASK_IN;
      ranges.push_back({block(i), kBytes, access, 0});
      for (const User& user : users[i]) {
        if (writes || user.writes) named.push_back(user.task);
      }
      if (writes) users[i].clear();
      users[i].push_back({number, writes});
      if (access == OFFPATH_TASK_OUT) continue;
      for (uint32_t k = 0; k < kBytes; ++k) sum = sum * 31 + expected[i * kBytes + k];
    }
    for (const offpath_task_range_t& range : ranges) {
      if (range.access == OFFPATH_TASK_IN) continue;
      for (uint32_t i = 0; i < kBlocks; ++i) {
        for (uint32_t k = 0; block(i) == range.address && k < kBytes; ++k)
          expected[i * kBytes + k] = static_cast<uint8_t>(sum + k);
      }
    }
    for (const uint32_t task : named) after.push_back(ops[task]);
    offpath_task_params_t params = tasks.params("mix");
    params.argument = &argument;
    params.argument_bytes = 1;
    params.ranges = ranges.data();
    params.ranges_count = static_cast<uint32_t>(ranges.size());
    params.after = after.data();
    params.after_count = static_cast<uint32_t>(after.size());
    params.priority = static_cast<int32_t>(random() % 5);
    ops.push_back(nullptr);
    REQUIRE_STATUS(offpath_task_submit(session, &params, &ops.back()), OFFPATH_OK);
  }
  for (offpath_op_t* op : ops) REQUIRE_STATUS(offpath_op_wait(op, kLongNs), OFFPATH_OK);
  for (uint32_t i = 0; i < kBlocks; ++i) REQUIRE(memcmp(block(i), &expected[i * kBytes], kBytes) == 0);
  for (offpath_op_t* op : ops) offpath_op_free(op);
  offpath_memory_free(session, memory);
}

}  // namespace offpath::testing
