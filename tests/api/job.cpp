// SPDX-License-Identifier: BSD-3-Clause
#include "job.hpp"

#include "../wires.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace offpath::testing {

void fail_process(const char* file, int line, const std::string& what) {
  fprintf(stderr, "%s:%d: process %d: %s\n", file, line, getpid(), what.c_str());
  _exit(1);
}

std::string name_of(offpath_status_t status) {
  return std::to_string(static_cast<int>(status)) + " (" + offpath_status_string(status) + ")";
}

bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds / 2);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    usleep(2000);
  }
  return true;
}

offpath_status_t finish(offpath_op_t* op) {
  const offpath_status_t status = offpath_op_wait(op, kLongNs);
  offpath_op_free(op);
  return status;
}

bool ended_well(pid_t child) {
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) out.push_back(entry.path().filename());
  return out;
}

// ---- Process ----------------------------------------------------------------------------------------------------

void Process::barrier(uint32_t participants) {
  std::atomic<uint32_t>& arrived = shared.arrived[barriers++ % std::size(shared.arrived)];
  arrived.fetch_add(1);
  const uint32_t needed = participants == 0 ? size : participants;
  while (arrived.load() < needed) usleep(200);  // the process's alarm ends a hang
}

offpath_attach_params_t Process::params() const {
  offpath_attach_params_t out{};
  out.struct_bytes = sizeof(out);
  memcpy(out.job_token, shared.token, sizeof(out.job_token));
  return out;
}

offpath_session_t* Process::attach(const char* what) const {
  const offpath_attach_params_t given = params();
  offpath_session_t* session = nullptr;
  offpath_error_t error{};
  const offpath_status_t status = offpath_session_attach(&given, &session, &error);
  if (status != OFFPATH_OK)
    fail_process(__FILE__, __LINE__, std::string(what) + ": " + name_of(status) + ": " + error.text);
  return session;
}

void Process::exchange(offpath_session_t* session) {
  size_t bytes = 0;
  REQUIRE_STATUS(offpath_session_address(session, shared.address[rank], OFFPATH_ADDRESS_MAX_BYTES, &bytes), OFFPATH_OK);
  REQUIRE(bytes > 0 && bytes <= OFFPATH_ADDRESS_MAX_BYTES);
  barrier();
}

offpath_team_params_t Process::team_params(uint8_t id) const {
  offpath_team_params_t out{};
  out.struct_bytes = sizeof(out);
  out.rank = rank;
  out.size = size;
  out.address_stride_bytes = OFFPATH_ADDRESS_MAX_BYTES;
  memcpy(out.id, shared.token, sizeof(out.id));
  out.id[15] = id;
  out.addresses = shared.address;
  return out;
}

offpath_team_t* Process::make_team(offpath_session_t* session, uint8_t id) const {
  const offpath_team_params_t given = team_params(id);
  offpath_team_t* team = nullptr;
  offpath_error_t error{};
  const offpath_status_t status = offpath_team_create(session, &given, &team, &error);
  if (status != OFFPATH_OK) fail_process(__FILE__, __LINE__, "team: " + name_of(status) + ": " + error.text);
  return team;
}

offpath_team_t* Process::join(offpath_session_t*& session) {
  session = attach();
  exchange(session);
  return make_team(session);
}

void Process::wait_ok(offpath_op_t* op) const {
  const offpath_status_t status = offpath_op_wait(op, kLongNs);
  if (status == OFFPATH_OK) return;
  char text[200] = "";
  offpath_op_describe(op, text, sizeof(text));
  fail_process(__FILE__, __LINE__, "rank " + std::to_string(rank) + ": " + text + ": " + name_of(status));
}

void Process::finish_ok(offpath_op_t* op) const {
  wait_ok(op);
  offpath_op_free(op);
}

void Process::complete(const Post& post, const char* file, int line) const {
  offpath_op_t* op = nullptr;
  const offpath_status_t status = post(&op);
  if (status != OFFPATH_OK) fail_process(file, line, "posting is " + name_of(status));
  finish_ok(op);
}

// ---- Job --------------------------------------------------------------------------------------------------------

Job::Job(uint32_t processes, uint32_t nodes) : nodes_(nodes), children_(processes, 0), signals_(processes, 0) {
  std::string pattern = OFFPATH_TEST_PREFIX "XXXXXX";
  root_ = mkdtemp(pattern.data());
  shared_ =
      static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  EXPECT_EQ(getrandom(shared_->token, sizeof(shared_->token), 0), static_cast<ssize_t>(sizeof(shared_->token)));
}

Job::~Job() {
  for (const pid_t child : children_) {
    if (child > 0) kill(child, SIGKILL), waitpid(child, nullptr, 0);
  }
  expect_nothing_left();
  kill_services();
  std::filesystem::remove_all(root_);
  munmap(shared_, sizeof(Shared));
}

void Job::run_attached(const SessionBody& body) {
  run([&](Process& p) {
    offpath_session_t* session = p.attach();
    p.exchange(session);
    body(p, session);
    p.barrier();
    offpath_session_detach(session);
  });
}

void Job::run_in_team(const TeamBody& body) {
  run_attached([&](Process& p, offpath_session_t* session) { body(p, session, p.make_team(session)); });
}

void Job::start(const Body& body) {
  for (uint32_t rank = 0; rank < children_.size(); ++rank) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(kPatienceSeconds);
      const std::string own = folder(rank % nodes_);
      setenv("OFFPATH_RUNTIME_DIR", own.c_str(), 1);
      setenv("OFFPATH_SERVICE_PATH", OFFPATH_TEST_SERVICE, 0);
      setenv("OFFPATH_SERVICE_SHARE", "1", 0);
      if (getenv("OFFPATH_TEST_DPU") != nullptr) setenv("OFFPATH_DPU", OFFPATH_TEST_DPU_COMMAND, 0);
      set_test_wires();
      for (const auto& [name, value] : environment_) setenv(name.c_str(), value.c_str(), 1);
      Process process{rank, static_cast<uint32_t>(children_.size()), own, *shared_};
      body(process);
      _exit(0);
    }
    children_[rank] = child;
  }
}

void Job::finish() {
  for (uint32_t rank = 0; rank < children_.size(); ++rank) {
    if (children_[rank] <= 0) continue;
    int status = 0;
    ASSERT_EQ(waitpid(children_[rank], &status, 0), children_[rank]);
    children_[rank] = 0;
    if (signals_[rank] != 0) {
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signals_[rank]) << "rank " << rank;
      continue;
    }
    EXPECT_FALSE(WIFSIGNALED(status)) << "rank " << rank << " ended by signal " << WTERMSIG(status)
                                      << (WTERMSIG(status) == SIGALRM ? " (it hung)" : "");
    EXPECT_TRUE(!WIFEXITED(status) || WEXITSTATUS(status) == 0) << "rank " << rank << " failed, see above";
  }
}

std::vector<pid_t> Job::services() const {
  std::vector<pid_t> out;
  for (const std::string& name : files_in("/proc")) {
    const pid_t pid = atoi(name.c_str());
    if (pid <= 0) continue;
    char words[8192];
    const int file = open(("/proc/" + name + "/cmdline").c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    const ssize_t got = read(file, words, sizeof(words));  // fails when the process ends meanwhile
    close(file);
    if (got > 0 && std::string(words, static_cast<size_t>(got)).find(root_ + "/") != std::string::npos)
      out.push_back(pid);
  }
  return out;
}

void Job::kill_services(int signal) const {
  for (const pid_t service : services()) kill(service, signal);
}

void Job::expect_nothing_left() {
  EXPECT_TRUE(eventually([&] { return services().empty(); })) << services().size() << " service(s) still run";
  for (uint32_t node = 0; node < nodes_; ++node) {
    EXPECT_EQ(files_in(folder(node)), std::vector<std::string>{}) << "left in the runtime folder";
  }
}

offpath_session_counters_t counters_of(offpath_session_t* session) {
  offpath_session_counters_t counters{};
  counters.struct_bytes = sizeof(counters);
  REQUIRE_STATUS(offpath_session_counters(session, &counters), OFFPATH_OK);
  return counters;
}

void stop_process(pid_t process) {
  if (kill(process, SIGSTOP) != 0) return;
  const std::string threads = "/proc/" + std::to_string(process) + "/task/";
  REQUIRE(eventually([&] {
    for (const std::string& name : files_in(threads)) {
      std::string line;
      std::getline(std::ifstream(threads + name + "/stat"), line);
      const size_t end = line.rfind(") ");
      if (end != std::string::npos && strchr("TZX", line[end + 2]) == nullptr) return false;
    }
    return true;
  }));
}

pid_t service_of(offpath_session_t* session) { return static_cast<pid_t>(counters_of(session).service_pid); }

}  // namespace offpath::testing
