// SPDX-License-Identifier: BSD-3-Clause
// Executors that are killed, stopped, held, or out of memory, and those that a command starts.
#include "misbehaving.hpp"

#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <thread>
#include <utility>

namespace offpath::testing {
namespace {

// Queued operations among them, as there are more than slots.
TEST(TaskFailure, ExecutorKilled) {
  if (on_dpu()) GTEST_SKIP() << "its processes have other numbers here; one that ends by SIGKILL is another test's";
  run_misbehaving("2", [](Process&, Misbehaving& tasks) {
    offpath_task_params_t params = tasks.tasks.params("nothing");
    std::vector<offpath_op_t*> ops;
    offpath_op_t* last = nullptr;
    for (int i = 0; i < 2500; ++i) {
      params.after = &last;
      params.after_count = last == nullptr ? 0 : 1;
      ops.push_back(last = tasks.tasks.submit(params));
      if (i % 3 == 0) offpath_op_free(last), ops.pop_back(), last = ops.empty() ? nullptr : ops.back();
    }
    offpath_op_t* victim = tasks.submit('w');
    tasks.await_begin();
    offpath_op_t* told = nullptr;  // which process runs the tasks
    int32_t process = 0;
    const offpath_task_range_t range{&process, sizeof(process), OFFPATH_TASK_OUT, 0};
    params = tasks.tasks.params("process");
    params.ranges = &range;
    params.ranges_count = 1;
    REQUIRE_STATUS(offpath_op_wait(told = tasks.tasks.submit(params), kLongNs), OFFPATH_OK);
    offpath_op_free(told);
    kill(process, SIGKILL);  // the other one, which is idle or between two tasks
    REQUIRE_STATUS(offpath_task_cancel(victim), OFFPATH_OK);
    tasks.check_end(victim, OFFPATH_ERR_CANCELLED, "cancelled");
    for (offpath_op_t* op : ops) REQUIRE_STATUS(finish(op), OFFPATH_OK);
  });
}

// Also of those that have ended, and of a service on another machine.
TEST(TaskFailure, ProcessorTimeOfExecutorsIsCharged) {
  run_misbehaving("1", [](Process&, Misbehaving& tasks) {
    uint64_t sum_ns = 0;
    for (int executor = 0; executor < 2; ++executor) {
      uint64_t ns = 0;
      const offpath_task_range_t range{&ns, sizeof(ns), OFFPATH_TASK_OUT, 0};
      offpath_task_params_t params = tasks.tasks.params("burn", &range);
      for (int i = 0; i < 2; ++i) REQUIRE_STATUS(tasks.tasks.run(params), OFFPATH_OK);
      REQUIRE(ns >= 60'000'000);
      sum_ns += ns;
      REQUIRE(eventually([&] {
        REQUIRE_STATUS(tasks.tasks.run(tasks.tasks.params("nothing")), OFFPATH_OK);
        return counters_of(tasks.session).elsewhere_cpu_ns >= sum_ns;
      }));
      if (executor == 0) tasks.check_end(tasks.submit('e'), OFFPATH_ERR_TASK, "exit(7)");
    }
  });
}

// Whoever may be run again is: another executor does it.
TEST(TaskFailure, ExecutorStopped) {
  if (on_dpu()) GTEST_SKIP() << "its processes have other numbers here";
  run_misbehaving("1", [](Process&, Misbehaving& tasks) {
    const auto process = [&] {
      int32_t number = 0;
      const offpath_task_range_t range{&number, sizeof(number), OFFPATH_TASK_OUT, 0};
      offpath_task_params_t params = tasks.tasks.params("process", &range);
      REQUIRE_STATUS(tasks.tasks.run(params), OFFPATH_OK);
      return number;
    };
    // Before a task comes.
    int32_t stopped = process();
    stop_process(stopped);
    tasks.check_end(tasks.submit('-', 0, uint64_t{3600} * 1000000000), OFFPATH_OK, "");
    REQUIRE(process() != stopped);
    // While it runs one that ends when it is begun again.
    stopped = process();
    offpath_op_t* op = tasks.submit('o');
    tasks.await_begin();
    stop_process(stopped);
    tasks.check_end(op, OFFPATH_OK, "");
    // One that has changed what it reads, and one that is to stay here, are begun once.
    for (const bool stays : {true, false}) {
      stopped = process();
      op = tasks.submit('w', 0, 0, {}, stays ? OFFPATH_TASK_OUT : OFFPATH_TASK_INOUT,
                        stays ? OFFPATH_TASK_STAYS_HOME : 0);
      tasks.await_begin();
      stop_process(stopped);
      REQUIRE(tasks.check_end(op, OFFPATH_ERR_TASK, "was stopped by a signal").executor ==
              static_cast<uint32_t>(stopped));
    }
    // Nothing happens to one that goes on.
    stopped = process();
    op = tasks.submit('c');
    tasks.await_begin();
    kill(stopped, SIGSTOP);
    kill(stopped, SIGCONT);
    REQUIRE_STATUS(offpath_task_cancel(op), OFFPATH_OK);
    tasks.check_end(op, OFFPATH_ERR_CANCELLED, "cancelled");
  });
}

// To the kernel it is not stopped, as a debugger holds it.
TEST(TaskFailure, ExecutorThatTakesNothing) {
  if (on_dpu()) GTEST_SKIP() << "its processes have other numbers here";
  run_misbehaving("1", [](Process&, Misbehaving& tasks) {
    int32_t process = 0;
    const offpath_task_range_t range{&process, sizeof(process), OFFPATH_TASK_OUT, 0};
    offpath_task_params_t params = tasks.tasks.params("process", &range);
    REQUIRE_STATUS(tasks.tasks.run(params), OFFPATH_OK);
    if (ptrace(PTRACE_SEIZE, process, nullptr, nullptr) != 0) return;  // not allowed here
    REQUIRE(ptrace(PTRACE_INTERRUPT, process, nullptr, nullptr) == 0);
    int status = 0;
    REQUIRE(waitpid(process, &status, __WALL) == process && WIFSTOPPED(status));
    std::thread debugger([&] { waitpid(process, &status, __WALL); });  // the kernel shows its end to the debugger first
    tasks.check_end(tasks.submit('-'), OFFPATH_OK, "");
    debugger.join();
    REQUIRE(WIFSIGNALED(status));
  });
}

TEST(TaskFailure, OutOfMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs more memory than the limit leaves";
#endif
  Job(1).run([](Process& p) {
    with_executors("1");
    setenv("OFFPATH_TASK_MEMORY_BYTES", "1000000000", 1);
    setenv("OFFPATH_TASK_ROOM_BYTES", "8388608", 1);
    Misbehaving tasks(p);
    REQUIRE(tasks.check_end(tasks.submit('m'), OFFPATH_ERR_TASK, "returned 12").code == 12);
    std::vector<uint8_t> much(9 << 20);
    const offpath_task_range_t range{much.data(), much.size(), OFFPATH_TASK_INOUT, 0};
    offpath_task_params_t params = tasks.tasks.params("mix", &range);
    tasks.check_end(tasks.tasks.submit(params), OFFPATH_ERR_NO_MEMORY, "more room for copies");
  });
}

// A service that is told how executors are started.
TEST(TaskFailure, ExecutorsByACommand) {
  const std::string service = OFFPATH_TEST_SERVICE;
  const std::string executor = service.substr(0, service.rfind('/')) + "/offpath-executor";
  for (const auto& [command, says] : {std::pair<std::string, const char*>{"env OFFPATH_TESTED=1 " + executor, nullptr},
                                      {"/nowhere/emulator " + executor, "cannot execute '/nowhere/emulator'"}}) {
    Job(1).run([&, wanted = says](Process& p) {
      const std::string script = p.folder + "-service";
      {
        std::ofstream file(script);
        file << "#!/bin/sh\nexec " << service << " --executor 'first is not last' --executor '" << command
             << "' \"$@\"\n";
      }
      chmod(script.c_str(), 0700);
      setenv("OFFPATH_SERVICE_PATH", script.c_str(), 1);
      offpath_session_t* session = p.attach();
      const offpath_function_params_t params{sizeof(params), 0, kFunctions, "nothing", nullptr};
      offpath_function_t* function = nullptr;
      offpath_error_t error{};
      const offpath_status_t status = offpath_function_register(session, &params, &function, &error);
      if (wanted == nullptr) {
        REQUIRE_STATUS(status, OFFPATH_OK);
        Tasks tasks(session);
        REQUIRE_STATUS(tasks.run(tasks.params("nothing")), OFFPATH_OK);
      } else {
        REQUIRE_STATUS(status, OFFPATH_ERR_NO_SERVICE);
        if (strstr(error.text, wanted) == nullptr) fail_process(__FILE__, __LINE__, error.text);
      }
      offpath_session_detach(session);
      unlink(script.c_str());
    });
  }
}

}  // namespace
}  // namespace offpath::testing
