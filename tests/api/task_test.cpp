// SPDX-License-Identifier: BSD-3-Clause
// Tasks: functions, memory, order, failures, cancelling.
#include "task.hpp"

#include <cstdlib>

namespace offpath::testing {
namespace {

TEST(Task, FunctionsAndMistakes) {
  Job(1).run_attached([](Process&, offpath_session_t* session) {
    const auto refused = [&](const char* library, const char* symbol, const char* signature, const char* says) {
      offpath_function_params_t params{sizeof(params), 0, library, symbol, signature};
      offpath_function_t* function = nullptr;
      offpath_error_t error{};
      REQUIRE_STATUS(offpath_function_register(session, &params, &function, &error), OFFPATH_ERR_ARGUMENT);
      REQUIRE(function == nullptr);
      if (strstr(error.text, says) == nullptr) fail_process(__FILE__, __LINE__, error.text);
    };
    refused("/nowhere/libnothing.so", "nothing", nullptr, "cannot load");
    refused(kFunctions, "nowhere", nullptr, "exports no function");
    refused(kFunctions, "nothing", "nothing 2", "signature");
    refused(kFunctions, "plain", "plain 1", "no signature");
    refused(kFunctions, "", nullptr, "missing");
    refused(nullptr, "nothing", nullptr, "missing");
    refused(std::string(5000, 'x').c_str(), "nothing", nullptr, "too long");
    Tasks tasks(session);
    offpath_task_params_t params = tasks.params("nothing");
    offpath_op_t* op = nullptr;
    const auto wrong = [&](auto change) {
      offpath_task_params_t bad = params;
      change(bad);
      REQUIRE_STATUS(offpath_task_submit(session, &bad, &op), OFFPATH_ERR_ARGUMENT);
    };
    char bytes[64] = {};
    offpath_task_range_t ranges[2] = {{bytes, 32, OFFPATH_TASK_OUT, 0}, {bytes + 31, 32, OFFPATH_TASK_IN, 0}};
    wrong([](auto& bad) { bad.struct_bytes -= 4; });
    wrong([](auto& bad) { bad.function = nullptr; });
    wrong([](auto& bad) { bad.argument_bytes = 1; });
    wrong([&](auto& bad) { bad.argument = bytes, bad.argument_bytes = OFFPATH_TASK_ARGUMENT_MAX_BYTES + 1; });
    wrong([](auto& bad) { bad.ranges_count = 1; });
    wrong([&](auto& bad) { bad.ranges = ranges, bad.ranges_count = OFFPATH_TASK_RANGES_MAX + 1; });
    wrong([&](auto& bad) { bad.ranges = ranges, bad.ranges_count = 2; });  // what it writes overlaps what it reads
    offpath_op_t* none[1] = {nullptr};
    wrong([&](auto& bad) { bad.after = none, bad.after_count = 1; });
    REQUIRE_STATUS(tasks.run(params), OFFPATH_OK);
  });
}

TEST(Task, MemoryInPlaceAndCopied) {
  Job(1).run_attached([](Process&, offpath_session_t* session) {
    Tasks tasks(session);
    constexpr size_t kCount = 3 << 20;
    void* memory = nullptr;
    REQUIRE_STATUS(offpath_memory_allocate(session, kCount * sizeof(double), &memory), OFFPATH_OK);
    auto* shared = static_cast<double*>(memory);
    std::vector<double> own(kCount);
    for (double* values : {shared, own.data()}) {
      for (size_t i = 0; i < kCount; ++i) values[i] = static_cast<double>(i);
      const double add = 0.5;
      const offpath_task_range_t range{values, kCount * sizeof(double), OFFPATH_TASK_INOUT, 0};
      REQUIRE_STATUS(tasks.run(tasks.plain(add, range)), OFFPATH_OK);
      for (size_t i = 0; i < kCount; ++i) REQUIRE(values[i] == static_cast<double>(i) + 0.5);
    }
    // Memory that is none.
    const offpath_task_range_t wild{reinterpret_cast<void*>(4096), 100, OFFPATH_TASK_INOUT, 0};
    offpath_task_params_t params = tasks.params("mix", &wild);
    REQUIRE_STATUS(tasks.run(params), OFFPATH_ERR_MEMORY_FAULT);
    // Many tasks, many ranges, long arguments.
    const std::vector<uint8_t> argument(OFFPATH_TASK_ARGUMENT_MAX_BYTES, 3);
    std::vector<offpath_task_range_t> ranges;
    std::vector<uint8_t> bytes(OFFPATH_TASK_RANGES_MAX * 2);
    for (size_t i = 0; i < OFFPATH_TASK_RANGES_MAX; ++i) ranges.push_back({&bytes[2 * i], 1, OFFPATH_TASK_OUT, 0});
    params.argument = argument.data();
    params.argument_bytes = argument.size();
    params.ranges = ranges.data();
    params.ranges_count = OFFPATH_TASK_RANGES_MAX;
    REQUIRE_STATUS(tasks.run(params), OFFPATH_OK);
    for (size_t i = 0; i < bytes.size(); ++i) REQUIRE(bytes[i] == (i % 2 == 0 ? 3 : 0));
    std::vector<offpath_op_t*> ops(3000);
    offpath_task_params_t empty = tasks.params("nothing");
    for (offpath_op_t*& op : ops) REQUIRE_STATUS(offpath_task_submit(session, &empty, &op), OFFPATH_OK);
    for (offpath_op_t* op : ops) REQUIRE_STATUS(finish(op), OFFPATH_OK);
  });
}

TEST(Task, RandomGraphs) {
  Job(1).run_attached([](Process&, offpath_session_t* session) { run_random_graph(session, 23, 3000); });
}

}  // namespace
}  // namespace offpath::testing
