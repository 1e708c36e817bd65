// SPDX-License-Identifier: BSD-3-Clause
// Tasks that move to other nodes' services. Each node here is a service; rank r is on node r.
#include "session/layout.hpp"
#include "task.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace offpath::testing {
namespace {

void set_mode(const char* mode, const char* executors = "2") {
  setenv("OFFPATH_TASK_BALANCE", mode, 1);
  setenv("OFFPATH_TASK_EXECUTORS", executors, 1);
  setenv("OFFPATH_TASK_CANCEL_MS", "20", 1);
}

// Executors of other services have no number here: their processes may be of another machine.
bool ran_elsewhere(offpath_op_t* op) {
  offpath_task_result_t result{};
  result.struct_bytes = sizeof(result);
  REQUIRE_STATUS(offpath_task_result(op, &result), OFFPATH_OK);
  return result.executor == 0;
}

// All members have registered the functions: who has none takes no tasks.
struct Node {
  explicit Node(Process& process) : p(process), team(p.join(session)), tasks(session) {
    for (const char* name : {"nothing", "mix", "process", "misbehave", "await_file", "sleep_ms"}) tasks.function(name);
    p.barrier();
  }
  // Nobody leaves before all are done.
  void leave() {
    p.barrier();
    offpath_session_detach(session);
  }
  offpath_op_t* submit(const std::string& name, const void* argument, uint64_t bytes, void* out, uint64_t out_bytes,
                       uint32_t access = OFFPATH_TASK_OUT, uint32_t flags = 0, uint64_t limit_ns = 0) {
    const offpath_task_range_t range{out, out_bytes, access, 0};
    offpath_task_params_t params = tasks.params(name, &range);
    params.flags = flags;
    params.limit_ns = limit_ns;
    params.argument = argument;
    params.argument_bytes = bytes;
    return tasks.submit(params);
  }
  // Late ones are begun at home, too.
  bool moves() {
    return eventually([&] { return !stays(); });
  }
  // Such a task was run at home.
  bool stays(uint32_t flags = 0) {
    int32_t process = 0;
    offpath_op_t* op = submit("process", nullptr, 0, &process, sizeof(process), OFFPATH_TASK_OUT, flags);
    REQUIRE_STATUS(offpath_op_wait(op, kLongNs), OFFPATH_OK);
    REQUIRE(process != 0);
    const bool elsewhere = ran_elsewhere(op);
    offpath_op_free(op);
    return !elsewhere;
  }

  Process& p;
  offpath_session_t* session = nullptr;
  offpath_team_t* team;
  Tasks tasks;
};

TEST(TaskMoves, GraphsAsAtHome) {
  for (const uint32_t nodes : {2U, 4U}) {
    Job(nodes, nodes).run([](Process& p) {
      set_mode("always");
      Node node(p);
      REQUIRE(node.moves());
      REQUIRE(node.stays(OFFPATH_TASK_STAYS_HOME));
      run_random_graph(node.session, 100 + p.rank, 300);
      node.leave();
    });
  }
}

TEST(TaskMoves, LongArgumentsManyRangesAndNone) {
  Job(2, 2).run([](Process& p) {
    set_mode("always");
    Node node(p);
    const std::vector<uint8_t> argument(OFFPATH_TASK_ARGUMENT_MAX_BYTES, 3);
    for (const uint32_t count : {0U, 1U, 150U, OFFPATH_TASK_RANGES_MAX + 0U}) {
      for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1000}, uint64_t{argument.size()}}) {
        std::vector<uint8_t> memory(size_t{count} * 3, 9);
        std::vector<offpath_task_range_t> ranges;
        for (uint32_t i = 0; i < count; ++i) ranges.push_back({&memory[3 * i], i % 3, OFFPATH_TASK_OUT, 0});
        offpath_task_params_t params = node.tasks.params("mix");
        params.argument = bytes == 0 ? nullptr : argument.data();
        params.argument_bytes = bytes;
        params.ranges = ranges.data();
        params.ranges_count = count;
        REQUIRE_STATUS(node.tasks.run(params), OFFPATH_OK);
        for (uint32_t i = 0; i < count; ++i) {
          for (uint32_t k = 0; k < 3; ++k) REQUIRE(memory[3 * i + k] == (k < i % 3 ? (bytes == 0 ? 0 : 3) + k : 9));
        }
      }
    }
    // Megabytes, in shared and other memory.
    void* shared = nullptr;
    constexpr size_t kBytes = 5 << 20;
    REQUIRE_STATUS(offpath_memory_allocate(node.session, kBytes, &shared), OFFPATH_OK);
    std::vector<uint8_t> own(kBytes, 1), expected(kBytes);
    memset(shared, 2, kBytes);
    const offpath_task_range_t both[2] = {{shared, kBytes, OFFPATH_TASK_IN, 0},
                                          {own.data(), kBytes, OFFPATH_TASK_INOUT, 0}};
    unsigned sum = 0;
    for (size_t i = 0; i < kBytes; ++i) sum = sum * 31 + 2;
    for (size_t i = 0; i < kBytes; ++i) sum = sum * 31 + 1;
    for (size_t i = 0; i < kBytes; ++i) expected[i] = static_cast<uint8_t>(sum + i);
    offpath_task_params_t params = node.tasks.params("mix");
    params.ranges = both;
    params.ranges_count = 2;
    REQUIRE_STATUS(node.tasks.run(params), OFFPATH_OK);
    REQUIRE(own == expected);
    // Memory that is none: as at home.
    const offpath_task_range_t wild{reinterpret_cast<void*>(4096), 100, OFFPATH_TASK_INOUT, 0};
    params.ranges = &wild;
    params.ranges_count = 1;
    REQUIRE_STATUS(node.tasks.run(params), OFFPATH_ERR_MEMORY_FAULT);
    node.leave();
  });
}

// What goes wrong there is said as if it had gone wrong at home, where it is run again.
TEST(TaskMoves, FailuresAreThoseOfHome) {
  Job(2, 2).run([](Process& p) {
    set_mode("always");
    Node node(p);
    struct Case {
      char how;
      const char* says;
    };
    for (const Case& one : {Case{'s', "Segmentation fault) at address 0x10 in "}, Case{'e', "exit(7)"},
                            Case{'k', "Killed"}, Case{'r', "returned 5: nobody is at home"}}) {
      uint8_t out = 0;
      offpath_op_t* op = node.submit("misbehave", &one.how, 1, &out, 1);
      REQUIRE_STATUS(offpath_op_wait(op, kLongNs), OFFPATH_ERR_TASK);
      offpath_task_result_t result{};
      result.struct_bytes = sizeof(result);
      REQUIRE_STATUS(offpath_task_result(op, &result), OFFPATH_OK);
      if (strstr(result.text, one.says) == nullptr) fail_process(__FILE__, __LINE__, result.text);
      offpath_op_free(op);
      REQUIRE(out == 0);
      REQUIRE(node.moves());  // others go on
    }
    node.leave();
  });
}

TEST(TaskMoves, CancelledWhereTheyAre) {
  Job(2, 2).run([](Process& p) {
    set_mode("always");
    Node node(p);
    for (const char how : {'w', 'c'}) {
      uint8_t out = 0;
      offpath_op_t* op = node.submit("misbehave", &how, 1, &out, 1);
      usleep(how == 'w' ? 20000 : 0);
      REQUIRE_STATUS(offpath_task_cancel(op), OFFPATH_OK);
      REQUIRE_STATUS(finish(op), OFFPATH_ERR_CANCELLED);
    }
    for (int i = 0; i < 20; ++i) REQUIRE(node.moves());
    // One that is away when its program leaves.
    const char how = 'w';
    static uint8_t out;
    node.submit("misbehave", &how, 1, &out, 1);
    node.leave();
  });
}

// Home has no executor left that would begin it, too, and nobody cancels it.
TEST(TaskMoves, LimitsHoldElsewhere) {
  Job job(2, 2);
  job.run([](Process& p) {
    set_mode("always", "1");
    Node node(p);
    const std::string here = p.folder + "-here", away = p.folder + "-away";
    uint8_t out[2][sizeof(int32_t)];
    offpath_op_t* ops[2];
    if (p.rank == 0) {
      ops[0] = node.submit("await_file", here.c_str(), here.size() + 1, out[0], sizeof(out[0]), OFFPATH_TASK_INOUT,
                           OFFPATH_TASK_STAYS_HOME);
      REQUIRE(eventually([&] { return exists(here + ".begun"); }));
      ops[1] = node.submit("await_file", away.c_str(), away.size() + 1, out[1], sizeof(out[1]), OFFPATH_TASK_INOUT, 0,
                           50'000'000);
      REQUIRE(eventually([&] { return exists(away + ".begun"); }));
    }
    p.barrier();
    if (p.rank == 1) REQUIRE(node.stays(OFFPATH_TASK_STAYS_HOME));  // on the executor that had it
    p.barrier();
    if (p.rank == 0) {
      for (const std::string& file : {away, here}) close(open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
      for (offpath_op_t* op : ops) REQUIRE_STATUS(finish(op), OFFPATH_OK);
      for (const std::string& file : {away, here}) {
        unlink(file.c_str());
        unlink((file + ".begun").c_str());
      }
    }
    node.leave();
  });
}

// Tasks wait on rank 1's node for a file. What happens to that node, and then the file is there.
template <typename Happens>
void while_away(Happens happens, bool there_goes_on = false) {
  Job job(2, 2);
  job.start([&](Process& p) {
    set_mode("always");
    Node node(p);
    const std::string file = p.folder + "-go";
    if (p.rank == 0) {
      uint8_t out[3][100];
      memset(out, 5, sizeof(out));
      offpath_op_t* ops[3];
      for (int i = 0; i < 3; ++i)
        ops[i] = node.submit("await_file", file.c_str(), file.size() + 1, out[i], sizeof(out[i]), OFFPATH_TASK_INOUT);
      REQUIRE(eventually([&] { return exists(file + ".begun"); }));
      p.barrier();
      p.barrier();
      const int made = open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
      close(made);
      for (offpath_op_t* op : ops) {
        REQUIRE_STATUS(offpath_op_wait(op, kLongNs), OFFPATH_OK);
        REQUIRE(there_goes_on || !ran_elsewhere(op));
        offpath_op_free(op);
      }
      for (const auto& one : out) {
        for (size_t i = 4; i < sizeof(one); ++i) REQUIRE(one[i] == 6);
      }
      unlink(file.c_str());
      unlink((file + ".begun").c_str());
      p.barrier();
      offpath_session_detach(node.session);
    } else {
      p.barrier();
      happens(p, node);
      p.barrier();
      p.barrier();
      offpath_session_detach(node.session);
    }
  });
  job.finish();
}

TEST(TaskMoves, ServiceKilledWithTasksOnIt) {
  while_away(
      [](Process&, Node& node) {
        kill(service_of(node.session), SIGKILL);
        REQUIRE(eventually([&] { return offpath_session_alive(node.session) == 0; }));
      },
      on_dpu());  // there it is the agent that is killed, and the service may have sent a result before it hears of it
}

TEST(TaskMoves, ServiceStoppedWithTasksOnIt) {
  while_away(
      [](Process& p, Node& node) {
        const pid_t service = service_of(node.session);
        stop_process(service);
        if (fork() == 0) {  // who lets it go on, when home is done
          for (int i = 0; i < 4000 && p.shared.arrived[p.barriers + 1].load() < 2; ++i) usleep(5000);
          kill(service, SIGCONT);
          _exit(0);
        }
      },
      on_dpu());  // the same: the agent stops
}

TEST(TaskMoves, ProgramGoneWithTasksOnItsService) {
  while_away([](Process&, Node& node) {
    offpath_team_destroy(node.team);
    offpath_session_detach(node.session);
    node.session = nullptr;
  });
}

// Reactive: who has nothing to do takes from who has much. Executors share the cores of ranks here, so `waits` says on the second node
// that its rank waits, and `goes_on` that it does not.
template <typename Waits, typename GoesOn>
void from_busy_to_idle(Waits waits, GoesOn goes_on) {
  Job(2, 2).run([=](Process& p) {
    set_mode("on", "1");
    Node node(p);
    if (p.rank == 0) {
      constexpr int kTasks = 150;
      const uint8_t ms = 5;
      std::vector<int32_t> processes(kTasks);
      std::vector<offpath_op_t*> ops(kTasks);
      for (int i = 0; i < kTasks; ++i)
        ops[static_cast<size_t>(i)] = node.submit("sleep_ms", &ms, 1, &processes[static_cast<size_t>(i)], 4);
      int there = 0;
      for (offpath_op_t* op : ops) {
        REQUIRE_STATUS(offpath_op_wait(op, kLongNs), OFFPATH_OK);
        there += ran_elsewhere(op) ? 1 : 0;
        offpath_op_free(op);
      }
      REQUIRE(there > 0 && there < kTasks);
      fprintf(stderr, "%d of %d were moved\n", there, kTasks);
      p.barrier();
    } else {
      REQUIRE(node.stays());
      waits(node.session);
      p.barrier();
      goes_on(node.session);
    }
    node.leave();
  });
}

TEST(TaskMoves, FromBusyToIdle) {
  from_busy_to_idle([](offpath_session_t* session) { offpath_session_note_wait(session, 1, 0); },
                    [](offpath_session_t* session) { offpath_session_note_wait(session, 0, 0); });
}

// As the preloaded library makes a program say it that does nothing but test.
TEST(TaskMoves, FromBusyToOneThatPolls) {
  const auto until = [](offpath_session_t* session, uint64_t end_ns) {
    void* shared = nullptr;  // the first block behind the control part
    REQUIRE_STATUS(offpath_memory_allocate(session, 64, &shared), OFFPATH_OK);
    auto* header = reinterpret_cast<session::SegmentHeader*>(static_cast<char*>(shared) - session::kSegmentBytes);
    REQUIRE(header->magic == session::kMagic);
    header->polls_until_ns = end_ns;
    offpath_memory_free(session, shared);
  };
  from_busy_to_idle([until](offpath_session_t* session) { until(session, UINT64_MAX); },
                    [until](offpath_session_t* session) { until(session, 0); });
}

}  // namespace
}  // namespace offpath::testing
