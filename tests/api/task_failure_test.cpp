// SPDX-License-Identifier: BSD-3-Clause
// Tasks that go wrong, are cancelled, or lose their service. Two executors unless it says otherwise.
#include "allreduce.hpp"
#include "misbehaving.hpp"

#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <thread>

namespace offpath::testing {
namespace {

void write_script(const std::string& path, const std::string& text) {
  std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
  chmod(path.c_str(), 0700);
}

TEST(TaskFailure, EndsOneTaskAndNoOther) {
  run_misbehaving("2", [](Process&, Misbehaving& tasks) {
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
  });
}

// A child is no executor, whether it returns from the task or ends: it takes nothing, and says nothing.
TEST(TaskFailure, ForksAChild) {
  run_misbehaving("1", [](Process&, Misbehaving& tasks) {
    const uint32_t executor = tasks.check_end(tasks.submit('-'), OFFPATH_OK, "").executor;
    for (int i = 0; i < 3; ++i) {
      REQUIRE(tasks.check_end(tasks.submit('f'), OFFPATH_OK, "").executor == executor);
      REQUIRE(tasks.check_end(tasks.submit('-'), OFFPATH_OK, "").executor == executor);
    }
    REQUIRE(tasks.check_end(tasks.submit('x'), OFFPATH_OK, "").executor == executor);
    tasks.check_end(tasks.submit('k'), OFFPATH_ERR_TASK, "Killed");
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
  });
}

TEST(TaskFailure, CancelledAndLimited) {
  run_misbehaving("1", [](Process&, Misbehaving& tasks) {
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
  });
}

TEST(TaskFailure, OverlapsThatAreNotOrdered) {
  run_misbehaving("2", [](Process&, Misbehaving& tasks) {
    offpath_op_t* first = tasks.submit('c');
    tasks.await_begin();
    tasks.check_end(tasks.submit('-'), OFFPATH_ERR_ARGUMENT, "Name that one in 'after'");
    offpath_op_t* second = tasks.submit('-', 1, 0, {first});
    const char how = '-';
    const offpath_task_range_t range{tasks.memory, 2, OFFPATH_TASK_IN, 0};
    offpath_task_params_t params = tasks.tasks.params("misbehave", &range);
    params.argument = &how;
    params.argument_bytes = 1;
    params.after = &first;
    params.after_count = 1;
    tasks.check_end(tasks.tasks.submit(params), OFFPATH_ERR_ARGUMENT, "task #");
    params.after = &second;  // and so after the first
    offpath_op_t* third = tasks.tasks.submit(params);
    REQUIRE_STATUS(offpath_task_cancel(first), OFFPATH_OK);
    REQUIRE(offpath_op_wait(first, kLongNs) != OFFPATH_OK);
    for (offpath_op_t* op : {second, third}) tasks.check_end(op, OFFPATH_ERR_DEPENDENCE, "has failed");
    offpath_op_free(first);
  });
}

// Nobody else gets it before the task has ended.
void free_memory_under_way(bool is_lost) {
  Job(1).run([is_lost](Process& p) {
    with_executors("1");
    Misbehaving tasks(p);
    void* memory = nullptr;
    REQUIRE_STATUS(offpath_memory_allocate(tasks.session, 4096, &memory), OFFPATH_OK);
    if (is_lost) kill(service_of(tasks.session), SIGKILL);
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
  });
}

TEST(TaskFailure, MemoryFreedUnderWay) { free_memory_under_way(false); }

// What may have been begun already, and must not be twice, ends with its service; all else goes on with the next one.
TEST(TaskFailure, ServiceLost) {
  if (on_dpu()) GTEST_SKIP() << "tasks of a lost DPU are errors";
  run_misbehaving("4", [](Process&, Misbehaving& tasks) {
    offpath_op_t* once = tasks.submit('w', 0, 0, {}, OFFPATH_TASK_OUT, OFFPATH_TASK_STAYS_HOME);
    offpath_op_t* changes = tasks.submit('w', 1, 0, {}, OFFPATH_TASK_INOUT);
    offpath_op_t* writes = tasks.submit('c', 2);
    for (uint32_t place = 0; place < 3; ++place) tasks.await_begin(place);
    offpath_op_t* follows = tasks.submit('-', 3, 0, {once});
    kill(service_of(tasks.session), SIGKILL);
    REQUIRE_STATUS(offpath_op_wait(once, kLongNs), OFFPATH_ERR_SERVICE_LOST);
    REQUIRE_STATUS(offpath_op_wait(changes, kLongNs), OFFPATH_ERR_SERVICE_LOST);
    REQUIRE_STATUS(offpath_op_wait(follows, kLongNs), OFFPATH_ERR_DEPENDENCE);
    REQUIRE(offpath_session_alive(tasks.session) == 0);
    tasks.check_end(tasks.submit('-', 3), OFFPATH_OK, "");
    REQUIRE_STATUS(offpath_op_wait(writes, 100'000'000), OFFPATH_IN_PROGRESS);
    REQUIRE_STATUS(offpath_task_cancel(writes), OFFPATH_OK);
    tasks.check_end(writes, OFFPATH_ERR_CANCELLED, "cancelled, and stopped");
    REQUIRE_STATUS(offpath_task_cancel(once), OFFPATH_OK);
    for (offpath_op_t* op : {once, changes, follows}) offpath_op_free(op);
  });
}

TEST(TaskFailure, DpuLost) {
  if (!on_dpu()) GTEST_SKIP() << "tasks of a lost service go on with the next one";
  run_misbehaving("2", [](Process&, Misbehaving& tasks) {
    offpath_op_t* begun = tasks.submit('w');
    tasks.await_begin();
    offpath_op_t* waits = tasks.submit('-', 1, 0, {begun});
    kill(service_of(tasks.session), SIGKILL);
    REQUIRE_STATUS(offpath_op_wait(begun, kLongNs), OFFPATH_ERR_SERVICE_LOST);
    // What an agent has passed on may have begun; it may be about to.
    const offpath_status_t status = offpath_op_wait(waits, kLongNs);
    REQUIRE(status == OFFPATH_ERR_NOT_STARTED || status == OFFPATH_ERR_SERVICE_LOST);
    offpath_op_t* op = nullptr;
    offpath_task_params_t params = tasks.tasks.params("misbehave");
    REQUIRE_STATUS(offpath_task_submit(tasks.session, &params, &op), OFFPATH_ERR_NOT_STARTED);
    REQUIRE_STATUS(offpath_task_cancel(begun), OFFPATH_OK);
    offpath_op_free(begun);
    offpath_op_free(waits);
  });
}

// A chain of them over blocks, each from the one before, with its service killed in the middle; what is registered and
// submitted later, too.
TEST(TaskFailure, GoesOnWithTheNextService) {
  if (on_dpu()) GTEST_SKIP() << "tasks of a lost DPU are errors";
  Job(1).run([](Process& p) {
    with_executors("2");
    offpath_session_t* const session = p.attach();
    Tasks tasks(session);
    constexpr uint32_t kTasks = 600, kBytes = 64, kAgain = 200;
    std::vector<uint8_t> blocks(kBytes * (kTasks + 1)), expected(blocks);
    std::vector<offpath_op_t*> ops;
    const auto submit = [&](uint32_t number) {
      const offpath_task_range_t ranges[] = {{&blocks[kBytes * number], kBytes, OFFPATH_TASK_IN, 0},
                                             {&blocks[kBytes * (number + 1)], kBytes, OFFPATH_TASK_OUT, 0}};
      const auto argument = static_cast<uint8_t>(number);
      offpath_task_params_t params = tasks.params("mix");
      params.argument = &argument;
      params.argument_bytes = 1;
      params.ranges = ranges;
      params.ranges_count = 2;
      params.after = ops.empty() ? nullptr : &ops.back();
      params.after_count = ops.empty() ? 0 : 1;
      ops.push_back(tasks.submit(params));
      unsigned sum = argument;
      for (uint32_t i = 0; i < kBytes; ++i) sum = sum * 31 + expected[kBytes * number + i];
      for (uint32_t i = 0; i < kBytes; ++i) expected[kBytes * (number + 1) + i] = static_cast<uint8_t>(sum + i);
    };
    for (uint32_t number = 0; number < kTasks; ++number) {
      if (number == kAgain) {
        REQUIRE_STATUS(offpath_op_wait(ops[kAgain / 4], kLongNs), OFFPATH_OK);
        kill(service_of(session), SIGKILL);
      }
      submit(number);
    }
    for (offpath_op_t* op : ops) REQUIRE_STATUS(finish(op), OFFPATH_OK);
    REQUIRE(blocks == expected);
    int32_t process = 0;
    const offpath_task_range_t range{&process, sizeof(process), OFFPATH_TASK_OUT, 0};
    offpath_task_params_t params = tasks.params("process", &range);  // not known before
    REQUIRE_STATUS(tasks.run(params), OFFPATH_OK);
    REQUIRE(process != 0);
    offpath_session_detach(session);
  });
}

// Whoever waits for the last one of a chain only never looks at those before it.
TEST(TaskFailure, OnlyTheLastOneIsWaitedFor) {
  if (on_dpu()) GTEST_SKIP() << "tasks of a lost DPU are errors";
  run_misbehaving("1", [](Process&, Misbehaving& tasks) {
    offpath_op_t* first = tasks.submit('c');
    tasks.await_begin();
    offpath_op_t* ops[20];
    offpath_op_t* last = tasks.submit('-', 1);
    for (offpath_op_t*& op : ops) {
      op = last;
      last = tasks.submit('-', 1, 0, {last});
    }
    kill(service_of(tasks.session), SIGKILL);
    REQUIRE_STATUS(offpath_op_wait(last, 1'000'000'000), OFFPATH_IN_PROGRESS);
    REQUIRE_STATUS(offpath_task_cancel(first), OFFPATH_OK);
    tasks.check_end(last, OFFPATH_OK, "");
    offpath_op_free(first);
    for (offpath_op_t* op : ops) offpath_op_free(op);
  });
}

// As without a loss: tasks that the next service knows, too.
TEST(TaskFailure, MemoryFreedWhileTheNextServiceUsesIt) {
  if (on_dpu()) GTEST_SKIP() << "tasks of a lost DPU are errors";
  free_memory_under_way(true);
}

// Who registers a function while its service is lost does it at the next one.
TEST(TaskFailure, LostWhileAFunctionIsRegistered) {
  if (on_dpu()) GTEST_SKIP() << "tasks of a lost DPU are errors";
  run_misbehaving("1", [](Process&, Misbehaving& tasks) {
    const pid_t service = service_of(tasks.session);
    kill(service, SIGSTOP);
    std::thread killer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      kill(service, SIGKILL);
    });
    tasks.check_end(tasks.submit('-'), OFFPATH_OK, "");
    killer.join();
  });
}

// Nothing else wakes who sleeps there.
TEST(TaskFailure, WaitsAtTheNextServiceAreToldOfEnds) {
  if (on_dpu()) GTEST_SKIP() << "tasks of a lost DPU are errors";
  run_misbehaving("1", [](Process&, Misbehaving& tasks) {
    kill(service_of(tasks.session), SIGKILL);
    offpath_task_params_t params = tasks.tasks.params("nothing");
    REQUIRE_STATUS(tasks.tasks.run(params), OFFPATH_OK);
    for (int i = 0; i < 2000; ++i) {
      offpath_op_t* op = tasks.tasks.submit(params);
      uint32_t seen = offpath_session_events(tasks.session);
      while (offpath_op_test(op) == OFFPATH_IN_PROGRESS) {
        REQUIRE(eventually([&] { return offpath_session_sleep(tasks.session, seen, kLongNs) == OFFPATH_OK; }));
        seen = offpath_session_events(tasks.session);
      }
      REQUIRE_STATUS(offpath_op_test(op), OFFPATH_OK);
      offpath_op_free(op);
    }
  });
}

// One loss, however many of a process's sessions it concerns.
TEST(TaskFailure, ManySessionsLoseOneService) {
  if (on_dpu()) GTEST_SKIP() << "tasks of a lost DPU are errors";
  Job(1).run([](Process& p) {
    with_executors("1");
    std::vector<offpath_session_t*> sessions;
    std::vector<Tasks> tasks;
    for (int i = 0; i < 4; ++i) {
      sessions.push_back(p.attach());
      tasks.emplace_back(sessions.back());
      REQUIRE_STATUS(tasks.back().run(tasks.back().params("nothing")), OFFPATH_OK);
    }
    kill(service_of(sessions[0]), SIGKILL);
    for (Tasks& each : tasks) REQUIRE_STATUS(each.run(each.params("nothing")), OFFPATH_OK);
    for (offpath_session_t* session : sessions) offpath_session_detach(session);
  });
}

// The next service dies while it gets to know the functions: its first executor kills it.
TEST(TaskFailure, TheNextServiceIsLostWhileFunctionsAreRegistered) {
  if (on_dpu()) GTEST_SKIP() << "tasks of a lost DPU are errors";
  run_misbehaving("1", [](Process& p, Misbehaving& tasks) {
    offpath_op_t* op = tasks.submit('-');
    tasks.check_end(op, OFFPATH_OK, "");
    const std::string service = OFFPATH_TEST_SERVICE, script = p.folder + "-service", killer = p.folder + "-executor";
    write_script(killer, "rmdir " + p.folder + "-kill && kill -9 $PPID\nexec " + service.substr(0, service.rfind('/')) +
                             "/offpath-executor \"$@\"");
    write_script(script, "exec " + service + " --executor " + killer + " \"$@\"");
    setenv("OFFPATH_SERVICE_PATH", script.c_str(), 1);
    mkdir((p.folder + "-kill").c_str(), 0700);
    kill(service_of(tasks.session), SIGKILL);
    tasks.check_end(tasks.submit('-'), OFFPATH_OK, "");
    REQUIRE(!exists(p.folder + "-kill"));
    for (const std::string& file : {script, killer}) unlink(file.c_str());
  });
}

TEST(TaskFailure, ServicesThatAreLostAllTheTimeAreNotFollowed) {
  if (on_dpu()) GTEST_SKIP() << "tasks of a lost DPU are errors";
  Job job(1);
  job.run([&job](Process& p) {
    with_executors("1");
    Misbehaving tasks(p);
    offpath_op_t* op = tasks.submit('w');
    for (int losses = 1; losses <= 3; ++losses) {
      tasks.await_begin();
      tasks.forget_begin();
      for (const pid_t service : job.services()) kill(service, SIGKILL);
      // Its end is only found by who looks.
      const auto has_ended = [&] { return offpath_op_test(op) != OFFPATH_IN_PROGRESS; };
      REQUIRE(eventually([&] { return has_ended() || tasks.has_begun(0); }));
      REQUIRE(has_ended() == (losses == 3));
    }
    REQUIRE_STATUS(offpath_op_test(op), OFFPATH_ERR_SERVICE_LOST);
    offpath_op_free(op);
  });
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
