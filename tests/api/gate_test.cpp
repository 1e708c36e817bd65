// SPDX-License-Identifier: BSD-3-Clause
// Operations of a team that come after tasks and other operations, and tasks that come after those.
#include "allreduce.hpp"
#include "task.hpp"

#include <signal.h>

#include <chrono>
#include <thread>
#include <vector>

namespace offpath::testing {
namespace {

offpath_op_t* allreduce(offpath_team_t* team, double* values, size_t count) {
  const offpath_block_t block{0, 0, values, count * sizeof(double), 0};
  const offpath_collective_t params = allreduce_of(block, block);
  offpath_op_t* op = nullptr;
  REQUIRE_STATUS(offpath_collective(team, &params, &op), OFFPATH_OK);
  return op;
}

offpath_op_t* add(Tasks& tasks, double* values, size_t count, double amount, offpath_op_t* const* after) {
  const offpath_task_range_t range{values, count * sizeof(double), OFFPATH_TASK_INOUT, 0};
  offpath_task_params_t params = tasks.plain(amount, range);
  params.after = after;
  params.after_count = after == nullptr ? 0 : 1;
  return tasks.submit(params);
}

// Runs until it is cancelled.
offpath_op_t* late(Tasks& tasks) {
  const char how = 'w';
  offpath_task_params_t params = tasks.params("misbehave");
  params.argument = &how;
  params.argument_bytes = 1;
  return tasks.submit(params);
}

class Two {
 public:
  explicit Two(Process& p) : team_(p.join(session)), tasks(session), process_(p) {}
  ~Two() {
    process_.barrier();
    offpath_team_destroy(team_);
    offpath_session_detach(session);
  }
  Two(const Two&) = delete;
  Two& operator=(const Two&) = delete;
  offpath_team_t* team() const { return team_; }

  offpath_session_t* session = nullptr;

 private:
  offpath_team_t* team_;

 public:
  Tasks tasks;

 private:
  Process& process_;
};

void free_all(std::vector<offpath_op_t*>& ops, Process& p) {
  for (offpath_op_t* op : ops) p.finish_ok(op);
  ops.clear();
}

// A chain that only the services see: task, allreduce, task, allreduce, ...
void chain(Process& p) {
  Two two(p);
  constexpr size_t kCount = 3000;
  std::vector<double> values(kCount, 1);
  std::vector<offpath_op_t*> ops;
  double expected = 1;
  for (int round = 0; round < 20; ++round) {
    ops.push_back(add(two.tasks, values.data(), kCount, p.rank + 0.5, ops.empty() ? nullptr : &ops.back()));
    REQUIRE_STATUS(offpath_team_after(two.team(), &ops.back(), 1), OFFPATH_OK);
    ops.push_back(allreduce(two.team(), values.data(), kCount));
    expected = 2 * expected + 2;
  }
  free_all(ops, p);
  for (const double value : values) REQUIRE(value == expected);
}

TEST(Gate, ChainsOfTasksAndAllreduces) {
  Job(2, 1).run(chain);
  Job(2, 2).run(chain);
}

TEST(Gate, WhatIsBehindItKeepsItsOrder) {
  Job(2, 2).run([](Process& p) {
    Two two(p);
    double one[1] = {1}, two_values[1] = {10}, three[1] = {100};
    std::vector<offpath_op_t*> ops;
    const bool first = p.rank == 0;
    offpath_op_t* const blocker = first ? late(two.tasks) : nullptr;
    // Held back by an operation that has ended well before, too; and by several gates, one behind the other.
    ops.push_back(allreduce(two.team(), one, 1));
    REQUIRE_STATUS(offpath_team_after(two.team(), &ops[0], 1), OFFPATH_OK);
    ops.push_back(allreduce(two.team(), two_values, 1));
    p.wait_ok(ops[1]);
    REQUIRE(one[0] == 2 && two_values[0] == 20);
    if (first) REQUIRE_STATUS(offpath_team_after(two.team(), &blocker, 1), OFFPATH_OK);
    ops.push_back(allreduce(two.team(), three, 1));
    if (first) {
      REQUIRE_STATUS(offpath_team_after(two.team(), &ops[2], 1), OFFPATH_OK);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it does not depend on that: nothing may begin
      REQUIRE(offpath_op_test(ops[2]) == OFFPATH_IN_PROGRESS);
      // An agent has passed it on, which may be to begin it.
      if (offpath_session_shares_memory(two.session) == 1) REQUIRE(offpath_team_started(two.team()) == 2);
      REQUIRE_STATUS(offpath_task_cancel(blocker), OFFPATH_OK);
    }
    // Cancelled: the next operation fails, on both members, and the one behind it does not.
    const offpath_status_t status = offpath_op_wait(ops[2], kLongNs);
    REQUIRE(first ? status == OFFPATH_ERR_DEPENDENCE : status < 0);
    offpath_op_free(blocker);
    offpath_op_free(ops[2]);
    ops.pop_back();
    if (first) {  // its gate's operation has failed: one more does
      ops.push_back(allreduce(two.team(), three, 1));
      REQUIRE_STATUS(finish(ops.back()), OFFPATH_ERR_DEPENDENCE);
    } else {
      ops.push_back(allreduce(two.team(), three, 1));
      REQUIRE(offpath_op_wait(ops.back(), kLongNs) < 0);
      offpath_op_free(ops.back());
    }
    ops.pop_back();
    double four[1] = {1000};
    ops.push_back(allreduce(two.team(), four, 1));
    free_all(ops, p);
    REQUIRE(four[0] == 2000);
  });
}

TEST(Gate, OneSidedAndOtherTeams) {
  Job(2, 2).run([](Process& p) {
    Two two(p);
    offpath_team_t* const other = p.make_team(two.session, 2);
    double memory[2] = {0, 0}, value = 1;
    offpath_window_params_t window_params{sizeof(window_params), 0, 7, memory, sizeof(memory)};
    offpath_window_t* window = nullptr;
    REQUIRE_STATUS(offpath_window_create(two.team(), &window_params, &window, nullptr), OFFPATH_OK);
    p.barrier();
    // task -> allreduce of another team -> get
    std::vector<offpath_op_t*> ops{add(two.tasks, &value, 1, p.rank + 1.0, nullptr)};
    REQUIRE_STATUS(offpath_team_after(other, ops.data(), 1), OFFPATH_OK);
    ops.push_back(allreduce(other, &value, 1));
    REQUIRE_STATUS(offpath_team_after(two.team(), &ops[1], 1), OFFPATH_OK);
    double got = -1;
    offpath_remote_t get{};
    get.struct_bytes = sizeof(get);
    get.kind = OFFPATH_GET;
    get.target = 1 - p.rank;
    get.target_bytes = sizeof(double);
    get.result = {0, 0, &got, sizeof(double), 0};
    offpath_op_t* op = nullptr;
    REQUIRE_STATUS(offpath_remote(window, &get, &op), OFFPATH_OK);
    ops.push_back(op);
    REQUIRE_STATUS(offpath_window_flush(window, kLongNs), OFFPATH_OK);
    REQUIRE(offpath_op_test(ops[1]) == OFFPATH_OK && value == 5 && got == 0);
    free_all(ops, p);
    p.barrier();
    offpath_window_destroy(window);
    offpath_team_destroy(other);
  });
}

TEST(Gate, WrongArgumentsAndEnds) {
  Job(1).run([](Process& p) {
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    Tasks tasks(session);
    offpath_op_t* none[1] = {nullptr};
    REQUIRE_STATUS(offpath_team_after(nullptr, none, 1), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_team_after(team, none, 1), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_team_after(team, nullptr, 1), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_team_after(team, none, OFFPATH_TASK_AFTER_MAX + 1), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_team_after(team, nullptr, 0), OFFPATH_OK);
    // A team and a session that go while something waits.
    offpath_op_t* blocker = late(tasks);
    double value = 1;
    REQUIRE_STATUS(offpath_team_after(team, &blocker, 1), OFFPATH_OK);
    offpath_op_t* op = allreduce(team, &value, 1);
    char text[200];
    offpath_op_describe(op, text, sizeof(text));
    offpath_op_free(op);
    offpath_team_destroy(team);
    offpath_op_free(blocker);
    offpath_session_detach(session);
    REQUIRE(value == 1);
  });
}

// The service ends while operations wait: they had not begun.
TEST(Gate, OfALostService) {
  Job(1).run_in_team([](Process&, offpath_session_t* session, offpath_team_t* team) {
    Tasks tasks(session);
    offpath_op_t* blocker = late(tasks);
    double value = 1;
    REQUIRE_STATUS(offpath_team_after(team, &blocker, 1), OFFPATH_OK);
    offpath_op_t* op = allreduce(team, &value, 1);
    REQUIRE(kill(service_of(session), SIGKILL) == 0);
    const offpath_status_t status = offpath_op_wait(op, kLongNs);
    const bool passed_on = offpath_session_shares_memory(session) == 0;  // by an agent: it may have begun
    REQUIRE(status == OFFPATH_ERR_NOT_STARTED || (passed_on && status == OFFPATH_ERR_SERVICE_LOST));
    offpath_op_free(op);
    offpath_op_free(blocker);
    offpath_team_destroy(team);
  });
}

}  // namespace
}  // namespace offpath::testing
