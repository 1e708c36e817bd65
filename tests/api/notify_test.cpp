// SPDX-License-Identifier: BSD-3-Clause
// Being told of the end of operations.
#include "misbehaving.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include <atomic>
#include <thread>
#include <vector>

namespace offpath::testing {
namespace {

struct Told {
  std::atomic<int> times{0};
  std::atomic<offpath_status_t> status{OFFPATH_IN_PROGRESS};
  static void call(void* context, offpath_status_t status) {
    auto& told = *static_cast<Told*>(context);
    told.status = status;
    ++told.times;
  }
  void await() const {
    while (times == 0) std::this_thread::yield();
    REQUIRE(times == 1);
  }
};

offpath_task_params_t misbehaving(Tasks& tasks, const char& how) {
  offpath_task_params_t params = tasks.params("misbehave");
  params.argument = &how;
  params.argument_bytes = 1;
  return params;
}

TEST(Notify, OnceWhateverHappensToTheHandle) {
  Job(1).run_attached([](Process&, offpath_session_t* session) {
    Tasks tasks(session);
    REQUIRE_STATUS(offpath_op_notify(nullptr, &Told::call, nullptr), OFFPATH_ERR_ARGUMENT);
    constexpr int kTasks = 2000;  // more than there are slots
    std::vector<Told> told(kTasks);
    const offpath_task_params_t empty = tasks.params("nothing");
    for (int i = 0; i < kTasks; ++i) {
      offpath_op_t* op = tasks.submit(empty);
      if (i % 3 == 0) REQUIRE_STATUS(offpath_op_wait(op, kLongNs), OFFPATH_OK);
      REQUIRE_STATUS(offpath_op_notify(op, &Told::call, &told[static_cast<size_t>(i)]), OFFPATH_OK);
      if (i % 3 == 0) REQUIRE(told[static_cast<size_t>(i)].times == 1);  // in the call itself
      offpath_op_free(op);
    }
    for (const Told& each : told) {
      each.await();
      REQUIRE(each.status == OFFPATH_OK);
    }
    // Failures, too.
    Told failed;
    const char crash = 's';
    offpath_op_t* op = tasks.submit(misbehaving(tasks, crash));
    REQUIRE_STATUS(offpath_op_notify(op, nullptr, nullptr), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_op_notify(op, &Told::call, &failed), OFFPATH_OK);
    failed.await();
    REQUIRE(failed.status == OFFPATH_ERR_TASK);
    offpath_op_free(op);
  });
}

bool readable(int descriptor, int timeout_ms) {
  pollfd watched = {descriptor, POLLIN, 0};
  return poll(&watched, 1, timeout_ms) == 1;
}

TEST(Notify, ByADescriptorThatCanBeReadThen) {
  Job(1).run_attached([](Process&, offpath_session_t* session) {
    Tasks tasks(session);
    const char for_ever = 'w';
    offpath_op_t* op = tasks.submit(misbehaving(tasks, for_ever));
    int descriptor = -1;
    REQUIRE_STATUS(offpath_op_fd(nullptr, &descriptor), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_op_fd(op, nullptr), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_op_fd(op, &descriptor), OFFPATH_OK);
    REQUIRE(!readable(descriptor, 0));
    // What its owner has closed is not written to, whoever has its number now.
    int closed = -1;
    REQUIRE_STATUS(offpath_op_fd(op, &closed), OFFPATH_OK);
    close(closed);
    int pipe_ends[2];
    REQUIRE(pipe2(pipe_ends, O_NONBLOCK) == 0);
    REQUIRE(pipe_ends[0] == closed || pipe_ends[1] == closed);
    REQUIRE_STATUS(offpath_task_cancel(op), OFFPATH_OK);
    REQUIRE(readable(descriptor, -1));
    REQUIRE(!readable(pipe_ends[0], 0));
    REQUIRE(offpath_op_test(op) != OFFPATH_IN_PROGRESS);
    close(descriptor);
    // Of one that has ended already, and without a handle.
    REQUIRE_STATUS(offpath_op_fd(op, &descriptor), OFFPATH_OK);
    offpath_op_free(op);
    REQUIRE(readable(descriptor, 0));
    close(descriptor);
  });
}

TEST(Notify, OfWhatHasNotEndedWhenTheSessionGoes) {
  Job(1).run([](Process& p) {
    offpath_session_t* session = p.attach();
    Tasks tasks(session);
    Told told[2];
    const char for_ever = 'w';
    offpath_op_t* op = tasks.submit(misbehaving(tasks, for_ever));
    for (Told& each : told) REQUIRE_STATUS(offpath_op_notify(op, &Told::call, &each), OFFPATH_OK);
    offpath_session_detach(session);
    for (const Told& each : told) REQUIRE(each.times == 1 && each.status == OFFPATH_ERR_STATE);
  });
}

TEST(Notify, OfALostService) {
  Job(1).run([](Process& p) {
    Misbehaving tasks(p);
    Told told;
    offpath_op_t* op = tasks.submit('w', 0, 0, {}, OFFPATH_TASK_OUT, OFFPATH_TASK_STAYS_HOME);
    tasks.await_begin();
    REQUIRE_STATUS(offpath_op_notify(op, &Told::call, &told), OFFPATH_OK);
    REQUIRE(kill(service_of(tasks.session), SIGKILL) == 0);
    told.await();
    REQUIRE(told.status == OFFPATH_ERR_SERVICE_LOST);
    offpath_op_free(op);
  });
}

TEST(Notify, OfWhatTheNextServiceHasDone) {
  if (on_dpu()) GTEST_SKIP() << "tasks of a lost DPU are errors";
  Job(1).run([](Process& p) {
    Misbehaving tasks(p);
    Told told;
    tasks.check_end(tasks.submit('-'), OFFPATH_OK, "");  // the function is known then
    stop_process(service_of(tasks.session));
    offpath_op_t* op = tasks.submit('-');
    REQUIRE_STATUS(offpath_op_notify(op, &Told::call, &told), OFFPATH_OK);
    REQUIRE(kill(service_of(tasks.session), SIGKILL) == 0);
    told.await();
    REQUIRE(told.status == OFFPATH_OK);
    offpath_op_free(op);
  });
}

}  // namespace
}  // namespace offpath::testing
