// SPDX-License-Identifier: BSD-3-Clause
// What tests of tasks have at hand: the functions of task_functions.c.
#pragma once

#include "job.hpp"

#include <cstring>
#include <map>
#include <string>

namespace offpath::testing {

inline constexpr const char* kFunctions = OFFPATH_TEST_FUNCTIONS;

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

  offpath_task_params_t params(const std::string& name) {
    offpath_task_params_t params{};
    params.struct_bytes = sizeof(params);
    params.function = function(name);
    return params;
  }

  offpath_op_t* submit(const offpath_task_params_t& params) {
    offpath_op_t* op = nullptr;
    REQUIRE_STATUS(offpath_task_submit(session_, &params, &op), OFFPATH_OK);
    return op;
  }

  offpath_status_t run(const offpath_task_params_t& params) {
    offpath_op_t* op = submit(params);
    const offpath_status_t status = offpath_op_wait(op, kLongNs);
    offpath_op_free(op);
    return status;
  }

 private:
  offpath_session_t* session_;
  std::map<std::string, offpath_function_t*> functions_;
};

}  // namespace offpath::testing
