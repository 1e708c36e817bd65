// SPDX-License-Identifier: BSD-3-Clause
// Sessions and tasks whose service is replaced by another one, as `offpath service restart` has it.
#include "misbehaving.hpp"
#include "watcher.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

namespace offpath::testing {
namespace {

base::Fd connect(const Process& p) {
  auto socket = session::connect_to(session::socket_path(p.folder, p.shared.token));
  REQUIRE(socket.ok());
  return std::move(socket.value());
}

session::AttachReply ask(const base::Fd& socket) {
  session::AttachRequest request{};
  request.version = session::kLinkVersion;
  request.kind = static_cast<uint32_t>(session::RequestKind::replace);
  REQUIRE(session::send_message(socket.get(), &request, sizeof(request)).ok());
  session::AttachReply reply{};
  REQUIRE(session::receive_message(socket.get(), &reply, sizeof(reply), kPatienceSeconds * 1000).ok());
  return reply;
}

// The process that is in the place of the service at the socket now.
pid_t replace(const Process& p) {
  const session::AttachReply reply = ask(connect(p));
  if (reply.status != OFFPATH_OK) fail_process(__FILE__, __LINE__, reply.text);
  return reply.process;
}

// Both have come before the first one is answered. The service that is in the place by then would not hear of a third one.
TEST(Replaced, OnceOnly) {
  Job(1).run([](Process& p) {
    offpath_session_t* const session = p.attach();
    const base::Fd first = connect(p), second = connect(p);
    const session::AttachReply replaced = ask(first), refused = ask(second);
    REQUIRE(replaced.status == OFFPATH_OK && refused.status == OFFPATH_ERR_STATE);
    offpath_session_t* const other = p.attach();
    REQUIRE(service_of(other) == replaced.process);
    for (offpath_session_t* each : {session, other}) offpath_session_detach(each);
  });
}

// A task that the old service is at stays there, and so does what comes after it, until it has ended; others do not wait for it.
TEST(Replaced, NewTasksGoToTheNextService) {
  if (on_dpu()) GTEST_SKIP() << "tasks stay with a DPU";
  Job(1).run([](Process& p) {
    with_executors("1");
    offpath_session_t* const session = p.attach();
    Tasks tasks(session);
    const std::string file = p.folder + "-file";
    std::vector<uint8_t> out(8);
    const offpath_task_range_t range{out.data(), out.size(), OFFPATH_TASK_OUT, 0};
    offpath_task_params_t params = tasks.params("await_file", &range);
    params.argument = file.c_str();
    params.argument_bytes = file.size() + 1;
    tasks.function("nothing");
    offpath_op_t* const first = tasks.submit(params);
    REQUIRE(eventually([&] { return exists(file + ".begun"); }));
    const pid_t before = service_of(session);
    REQUIRE(replace(p) != before);
    // The only executor of the old one is busy.
    std::vector<offpath_op_t*> ops{first};
    REQUIRE(eventually([&] {
      ops.push_back(tasks.submit(tasks.params("nothing")));
      return offpath_op_wait(ops.back(), 20'000'000) == OFFPATH_OK;
    }));
    for (int i = 0; i < 2; ++i) {
      offpath_op_t* const one_before = i == 0 ? first : ops.back();
      offpath_task_params_t later = tasks.params("nothing");
      later.after = &one_before;
      later.after_count = 1;
      ops.push_back(tasks.submit(later));
    }
    REQUIRE_STATUS(offpath_op_wait(ops.back(), 50'000'000), OFFPATH_IN_PROGRESS);
    const uint8_t milliseconds = 1;
    std::vector<uint8_t> number(8);
    const offpath_task_range_t there{number.data(), number.size(), OFFPATH_TASK_OUT, 0};
    offpath_task_params_t unknown = tasks.params("sleep_ms", &there);  // so far
    unknown.argument = &milliseconds;
    unknown.argument_bytes = 1;
    REQUIRE_STATUS(tasks.run(unknown), OFFPATH_OK);
    REQUIRE_STATUS(offpath_op_test(first), OFFPATH_IN_PROGRESS);
    std::ofstream(file) << "go";
    for (offpath_op_t* op : ops) REQUIRE_STATUS(finish(op), OFFPATH_OK);
    REQUIRE(service_of(session) == before && offpath_session_alive(session) != 0);
    offpath_session_detach(session);
    for (const std::string& name : {file, file + ".begun"}) unlink(name.c_str());
  });
}

TEST(Replaced, UnderManyTasks) {
  if (on_dpu()) GTEST_SKIP() << "tasks stay with a DPU";
  Job(1).run([](Process& p) {
    with_executors("2");
    offpath_session_t* const session = p.attach();
    std::atomic<bool> over{false};
    std::thread replacing([&p, &over] {
      for (int i = 0; i < 3; ++i) {
        replace(p);
        while (Watcher(p).reply.clients == 0) usleep(1000);  // who has none waits for its first one, also at the end
      }
      over = true;
    });
    for (uint32_t seed = 1; seed < 3 || !over; ++seed) run_random_graph(session, seed, 500);
    replacing.join();
    offpath_session_detach(session);
  });
}

// Descriptors, threads and mappings of this process.
std::array<size_t, 3> held() {
  std::array<size_t, 3> count{};
  const char* const places[] = {"/proc/self/fd", "/proc/self/task"};
  for (size_t i = 0; i < 2; ++i) {
    const std::filesystem::directory_iterator entries(places[i]);
    count[i] = static_cast<size_t>(std::distance(begin(entries), end(entries)));
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) count[2] += line.find("memfd:") != std::string::npos ? 1 : 0;
  return count;
}

TEST(Replaced, OftenKeepsNothingOfThoseInBetween) {
  if (on_dpu()) GTEST_SKIP() << "tasks stay with a DPU";
  Job(1).run([](Process& p) {
    with_executors("1");
    offpath_session_t* const session = p.attach();
    Tasks tasks(session);
    std::vector<pid_t> services;
    std::array<size_t, 3> before{};
    for (int i = 0; i < 9; ++i) {
      services.push_back(replace(p));
      REQUIRE(
          eventually([&] { return tasks.run(tasks.params("nothing")) == OFFPATH_OK && Watcher(p).reply.clients > 0; }));
      for (size_t gone = 0; gone + 1 < services.size(); ++gone)
        REQUIRE(eventually([&] { return kill(services[gone], 0) != 0; }));
      if (i == 2) before = held();
    }
    REQUIRE(eventually([&] { return held() == before; }));
    offpath_session_detach(session);
  });
}

// It has a team there: all goes on, and comes after its tasks.
TEST(Replaced, TeamsStay) {
  if (on_dpu()) GTEST_SKIP() << "the service on a DPU is replaced there";
  Job(2).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    const pid_t before = service_of(session);
    p.barrier();
    if (p.rank == 0) REQUIRE(replace(p) != before);
    p.barrier();
    Tasks tasks(session);
    offpath_op_t* const op = tasks.submit(tasks.params("nothing"));
    REQUIRE_STATUS(offpath_team_after(team, &op, 1), OFFPATH_OK);
    REQUIRE_STATUS(finish(op), OFFPATH_OK);
    REQUIRE(service_of(session) == before && offpath_session_alive(session) != 0);
    offpath_session_t* other = p.attach();
    REQUIRE(service_of(other) != before);
    offpath_session_detach(other);
    p.barrier();
  });
}

}  // namespace
}  // namespace offpath::testing
