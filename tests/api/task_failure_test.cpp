// SPDX-License-Identifier: BSD-3-Clause
// Tasks that go wrong, are cancelled, or lose their executor or service. Two executors unless it says otherwise.
#include "allreduce.hpp"
#include "task.hpp"

#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

namespace offpath::testing {
namespace {

class Misbehaving {
 public:
  explicit Misbehaving(const Process& p) : session(p.attach()), tasks(session), folder_(p.folder) {
    void* memory_here = nullptr;
    REQUIRE_STATUS(offpath_memory_allocate(session, 4096, &memory_here), OFFPATH_OK);
    memory = static_cast<uint8_t*>(memory_here);
  }
  ~Misbehaving() {
    for (uint32_t place = 0; place < kPlaces; ++place) unlink(file(place).c_str());
  }
  // It says by file(place) that it runs: memory may be a copy.
  offpath_op_t* submit(char how, uint32_t place = 0, uint64_t limit_ns = 0, std::vector<offpath_op_t*> after = {},
                       uint32_t access = OFFPATH_TASK_OUT, uint32_t flags = 0) {
    unlink(file(place).c_str());
    const offpath_task_range_t range{&memory[place], 1, access, 0};
    const std::string argument = how + file(place);
    offpath_task_params_t params = tasks.params("misbehave");
    params.argument = argument.c_str();
    params.argument_bytes = argument.size() + 1;
    params.ranges = &range;
    params.ranges_count = 1;
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

void with_executors(const char* count) {
  setenv("OFFPATH_TASK_EXECUTORS", count, 1);
  setenv("OFFPATH_TASK_CANCEL_MS", "20", 1);
}

TEST(TaskFailure, EndsOneTaskAndNoOther) {
  Job(1).run([](Process& p) {
    with_executors("2");
    Misbehaving tasks(p);
    struct Case {
      char how;
      int signal;
      const char* says;
    };
    for (const Case& one : {Case{'s', SIGSEGV, "Segmentation fault) at address 0x10 in "},
                            Case{'a', SIGABRT, "crashed"}, Case{'e', 0, "exit(7)"}, Case{'_', 0, "status 8"},
                            Case{'k', SIGKILL, "Killed"}, Case{'r', 0, "returned 5: nobody is at home"}}) {
      offpath_op_t* good[20];
      offpath_task_params_t params = tasks.tasks.params("nothing");
      offpath_op_t* bad = tasks.submit(one.how);
      offpath_op_t* next = tasks.submit('-', 1, 0, {bad});
      for (offpath_op_t*& op : good) op = tasks.tasks.submit(params);
      const offpath_task_result_t result = tasks.check_end(bad, OFFPATH_ERR_TASK, one.says);
      REQUIRE(result.signal == one.signal && result.executor != 0);
      REQUIRE(result.code == (one.how == 'r' ? 5 : 0));
      tasks.check_end(next, OFFPATH_ERR_DEPENDENCE, "has failed");
      REQUIRE(!tasks.has_begun(1));
      for (offpath_op_t* op : good) tasks.check_end(op, OFFPATH_OK, "");
    }
    // After an operation that had failed already.
    offpath_op_t* bad = tasks.submit('r');
    REQUIRE_STATUS(offpath_op_wait(bad, kLongNs), OFFPATH_ERR_TASK);
    tasks.check_end(tasks.submit('-', 0, 0, {bad}), OFFPATH_ERR_DEPENDENCE, "has failed");
    offpath_op_free(bad);
    offpath_session_detach(tasks.session);
  });
}

// It returns another number than 0 because it was told to stop; its executor goes on.
TEST(TaskFailure, ToldToStop) {
  Job(1).run([](Process& p) {
    with_executors("1");
    setenv("OFFPATH_TASK_CANCEL_MS", "3600000", 1);
    Misbehaving tasks(p);
    offpath_op_t* polite = tasks.submit('c');
    offpath_op_t* next = tasks.submit('-', 1, 0, {polite});
    tasks.await_begin();
    REQUIRE_STATUS(offpath_task_cancel(polite), OFFPATH_OK);
    REQUIRE_STATUS(offpath_op_wait(polite, kLongNs), OFFPATH_ERR_CANCELLED);
    REQUIRE_STATUS(offpath_task_cancel(polite), OFFPATH_OK);
    const offpath_task_result_t stopped = tasks.check_end(polite, OFFPATH_ERR_CANCELLED, "cancelled, and stopped");
    REQUIRE(stopped.code == 1 && stopped.signal == 0);
    tasks.check_end(next, OFFPATH_ERR_DEPENDENCE, "has failed");
    REQUIRE(tasks.check_end(tasks.submit('-'), OFFPATH_OK, "").executor == stopped.executor);
    offpath_session_detach(tasks.session);
  });
}

TEST(TaskFailure, CancelledAndLimited) {
  Job(1).run([](Process& p) {
    with_executors("1");
    Misbehaving tasks(p);
    offpath_op_t* endless = tasks.submit('w');
    tasks.await_begin();
    offpath_op_t* waiting = tasks.submit('-', 1);              // for the executor
    offpath_op_t* later = tasks.submit('-', 2, 0, {endless});  // for the task
    for (offpath_op_t* op : {waiting, later, endless}) REQUIRE_STATUS(offpath_task_cancel(op), OFFPATH_OK);
    tasks.check_end(waiting, OFFPATH_ERR_CANCELLED, "cancelled");
    tasks.check_end(later, OFFPATH_ERR_CANCELLED, "cancelled");
    tasks.check_end(endless, OFFPATH_ERR_CANCELLED, "ended as it went on");
    // More than the board has places, while nobody takes any.
    endless = tasks.submit('w');
    tasks.await_begin();
    for (int i = 0; i < 200; ++i) {
      waiting = tasks.submit('-', 1);
      REQUIRE_STATUS(offpath_task_cancel(waiting), OFFPATH_OK);
      tasks.check_end(waiting, OFFPATH_ERR_CANCELLED, "cancelled");
    }
    waiting = tasks.submit('-', 1);
    REQUIRE_STATUS(offpath_task_cancel(endless), OFFPATH_OK);
    tasks.check_end(endless, OFFPATH_ERR_CANCELLED, "cancelled");
    tasks.check_end(waiting, OFFPATH_OK, "");
    tasks.check_end(tasks.submit('w', 0, 30000000), OFFPATH_ERR_TASK, "longer than its limit of 30 ms");
    tasks.check_end(tasks.submit('-', 0, uint64_t{3600} * 1000000000), OFFPATH_OK, "");
    // One that nobody waits for ends with the client.
    offpath_op_free(tasks.submit('w'));
    tasks.await_begin();
    offpath_session_detach(tasks.session);
  });
}

TEST(TaskFailure, OverlapsThatAreNotOrdered) {
  Job(1).run([](Process& p) {
    with_executors("2");
    Misbehaving tasks(p);
    offpath_op_t* first = tasks.submit('c');
    tasks.await_begin();
    tasks.check_end(tasks.submit('-'), OFFPATH_ERR_ARGUMENT, "Name that one in 'after'");
    offpath_op_t* second = tasks.submit('-', 1, 0, {first});
    const char how = '-';
    const offpath_task_range_t range{tasks.memory, 2, OFFPATH_TASK_IN, 0};
    offpath_task_params_t params = tasks.tasks.params("misbehave");
    params.argument = &how;
    params.argument_bytes = 1;
    params.ranges = &range;
    params.ranges_count = 1;
    params.after = &first;
    params.after_count = 1;
    tasks.check_end(tasks.tasks.submit(params), OFFPATH_ERR_ARGUMENT, "task #");
    params.after = &second;  // and so after the first
    offpath_op_t* third = tasks.tasks.submit(params);
    REQUIRE_STATUS(offpath_task_cancel(first), OFFPATH_OK);
    REQUIRE(offpath_op_wait(first, kLongNs) != OFFPATH_OK);
    for (offpath_op_t* op : {second, third}) tasks.check_end(op, OFFPATH_ERR_DEPENDENCE, "has failed");
    offpath_op_free(first);
    offpath_session_detach(tasks.session);
  });
}

// Queued operations among them, as there are more than slots.
TEST(TaskFailure, ExecutorKilled) {
  if (on_dpu()) GTEST_SKIP() << "its processes have other numbers here; one that ends by SIGKILL is another test's";
  Job(1).run([](Process& p) {
    with_executors("2");
    Misbehaving tasks(p);
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
    for (offpath_op_t* op : ops) {
      REQUIRE_STATUS(offpath_op_wait(op, kLongNs), OFFPATH_OK);
      offpath_op_free(op);
    }
    offpath_session_detach(tasks.session);
  });
}

// Whoever may be run again is: another executor does it.
TEST(TaskFailure, ExecutorStopped) {
  if (on_dpu()) GTEST_SKIP() << "its processes have other numbers here";
  Job(1).run([](Process& p) {
    with_executors("1");
    Misbehaving tasks(p);
    const auto process = [&] {
      int32_t number = 0;
      const offpath_task_range_t range{&number, sizeof(number), OFFPATH_TASK_OUT, 0};
      offpath_task_params_t params = tasks.tasks.params("process");
      params.ranges = &range;
      params.ranges_count = 1;
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
    offpath_session_detach(tasks.session);
  });
}

// To the kernel it is not stopped, as a debugger holds it.
TEST(TaskFailure, ExecutorThatTakesNothing) {
  if (on_dpu()) GTEST_SKIP() << "its processes have other numbers here";
  Job(1).run([](Process& p) {
    with_executors("1");
    Misbehaving tasks(p);
    int32_t process = 0;
    const offpath_task_range_t range{&process, sizeof(process), OFFPATH_TASK_OUT, 0};
    offpath_task_params_t params = tasks.tasks.params("process");
    params.ranges = &range;
    params.ranges_count = 1;
    REQUIRE_STATUS(tasks.tasks.run(params), OFFPATH_OK);
    if (ptrace(PTRACE_SEIZE, process, nullptr, nullptr) != 0) return;  // not allowed here
    REQUIRE(ptrace(PTRACE_INTERRUPT, process, nullptr, nullptr) == 0);
    int status = 0;
    REQUIRE(waitpid(process, &status, __WALL) == process && WIFSTOPPED(status));
    std::thread debugger([&] { waitpid(process, &status, __WALL); });  // the kernel shows its end to the debugger first
    tasks.check_end(tasks.submit('-'), OFFPATH_OK, "");
    debugger.join();
    REQUIRE(WIFSIGNALED(status));
    offpath_session_detach(tasks.session);
  });
}

// Nobody else gets it before the task has ended.
TEST(TaskFailure, MemoryFreedUnderWay) {
  Job(1).run([](Process& p) {
    with_executors("1");
    Misbehaving tasks(p);
    void* memory = nullptr;
    REQUIRE_STATUS(offpath_memory_allocate(tasks.session, 4096, &memory), OFFPATH_OK);
    offpath_task_params_t params = tasks.tasks.params("mix");  // while the executor has time to load it
    offpath_op_t* before = tasks.submit('c');
    tasks.await_begin();
    const offpath_task_range_t range{memory, 4096, OFFPATH_TASK_OUT, 0};
    params.ranges = &range;
    params.ranges_count = 1;
    offpath_op_t* user = tasks.tasks.submit(params);
    offpath_memory_free(tasks.session, memory);
    void* other = nullptr;
    REQUIRE_STATUS(offpath_memory_allocate(tasks.session, 4096, &other), OFFPATH_OK);
    REQUIRE(other != memory);
    REQUIRE_STATUS(offpath_task_cancel(before), OFFPATH_OK);
    tasks.check_end(user, OFFPATH_ERR_MEMORY_FAULT, "was freed");
    REQUIRE_STATUS(offpath_memory_allocate(tasks.session, 4096, &other), OFFPATH_OK);
    REQUIRE(other == memory);
    for (int i = 0; i < 4096; ++i) REQUIRE(static_cast<uint8_t*>(other)[i] == 0);
    offpath_op_free(before);
    offpath_session_detach(tasks.session);
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
    offpath_task_params_t params = tasks.tasks.params("mix");
    params.ranges = &range;
    params.ranges_count = 1;
    tasks.check_end(tasks.tasks.submit(params), OFFPATH_ERR_NO_MEMORY, "more room for copies");
    offpath_session_detach(tasks.session);
  });
}

TEST(TaskFailure, ServiceLost) {
  Job(1).run([](Process& p) {
    with_executors("2");
    Misbehaving tasks(p);
    offpath_op_t* begun = tasks.submit('w');
    tasks.await_begin();
    offpath_op_t* waits = tasks.submit('-', 1, 0, {begun});
    kill(service_of(tasks.session), SIGKILL);
    REQUIRE_STATUS(offpath_op_wait(begun, kLongNs), OFFPATH_ERR_SERVICE_LOST);
    // What an agent has passed on may have begun; it may be about to.
    const offpath_status_t status = offpath_op_wait(waits, kLongNs);
    REQUIRE(status == OFFPATH_ERR_NOT_STARTED || (on_dpu() && status == OFFPATH_ERR_SERVICE_LOST));
    offpath_op_t* op = nullptr;
    offpath_task_params_t params = tasks.tasks.params("misbehave");
    REQUIRE_STATUS(offpath_task_submit(tasks.session, &params, &op), OFFPATH_ERR_NOT_STARTED);
    REQUIRE_STATUS(offpath_task_cancel(begun), OFFPATH_OK);
    offpath_op_free(begun);
    offpath_op_free(waits);
    offpath_session_detach(tasks.session);
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

// A task after an allreduce, on two members; and one after an operation that fails.
TEST(TaskFailure, AfterAnAllreduce) {
  Job(2).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    Tasks tasks(session);
    double value = p.rank + 1, sum = 0;
    const offpath_block_t send{0, 0, &value, sizeof(value), 0}, recv{0, 0, &sum, sizeof(sum), 0};
    const offpath_collective_t all = allreduce_of(send, recv);
    offpath_op_t* reduced = nullptr;
    REQUIRE_STATUS(offpath_collective(team, &all, &reduced), OFFPATH_OK);
    const double add = 0.5;
    const offpath_task_range_t range{&sum, sizeof(sum), OFFPATH_TASK_INOUT, 0};
    offpath_task_params_t params = tasks.plain(add, range);
    params.after = &reduced;
    params.after_count = 1;
    offpath_op_t* op = tasks.submit(params);
    offpath_op_free(reduced);
    REQUIRE_STATUS(offpath_op_wait(op, kLongNs), OFFPATH_OK);
    REQUIRE(sum == 3.5);
    offpath_op_free(op);
  });
}

}  // namespace
}  // namespace offpath::testing
