// SPDX-License-Identifier: BSD-3-Clause
// Job: real processes and real services on this machine. Processes are forked before anybody attaches; each "node"
// has a runtime folder, and so a service, of its own (with OFFPATH_TEST_DPU an agent, and the service on its DPU), and services reach each other by TCP on lo. Its end checks that
// nothing is left: no service, no socket. Nothing depends on time; a hang is ended after kPatienceSeconds.
#pragma once

#include <gtest/gtest.h>

#include <offpath/offpath.h>

#include <sys/types.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace offpath::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kPatienceSeconds = 600;
#else
inline constexpr int kPatienceSeconds = 60;
#endif
inline constexpr uint32_t kMaxProcesses = 16;
inline constexpr uint64_t kLongNs = uint64_t{30} * 1000000000;

// In a forked process: report and leave. gtest's macros would be lost there.
[[noreturn]] void fail_process(const char* file, int line, const std::string& what);
std::string name_of(offpath_status_t status);
#define REQUIRE(condition) ((condition) ? void() : ::offpath::testing::fail_process(__FILE__, __LINE__, #condition))
#define REQUIRE_STATUS(call, expected)                                                                               \
  do {                                                                                                               \
    const offpath_status_t got_status = (call);                                                                      \
    if (got_status != (expected)) {                                                                                  \
      ::offpath::testing::fail_process(__FILE__, __LINE__,                                                           \
                                       #call " is " + ::offpath::testing::name_of(got_status) + ", not " #expected); \
    }                                                                                                                \
  } while (0)

struct Shared {
  std::atomic<uint32_t> arrived[4096];
  std::atomic<int64_t> value[kMaxProcesses];
  uint8_t address[kMaxProcesses][OFFPATH_ADDRESS_MAX_BYTES];
  uint8_t token[OFFPATH_TOKEN_BYTES];
};

// What one process of the job has at hand.
struct Process {
  uint32_t rank;
  uint32_t size;
  std::string folder;  // runtime folder of its node
  Shared& shared;
  uint32_t barriers = 0;

  void barrier(uint32_t participants = 0);  // 0: all
  offpath_attach_params_t params() const;
  offpath_session_t* attach(const char* what = "attach") const;
  // Writes the session's address where the others find it, and waits for theirs.
  void exchange(offpath_session_t* session);
  offpath_team_params_t team_params(uint8_t id) const;
  offpath_team_t* make_team(offpath_session_t* session, uint8_t id = 1) const;
  // attach, exchange, make_team
  offpath_team_t* join(offpath_session_t*& session);
  void wait_ok(offpath_op_t* op) const;
  // Waits until it is done well, and frees it.
  void finish_ok(offpath_op_t* op) const;
  // What `post` gives to the handle that it gets is posted well, done well and freed.
  using Post = std::function<offpath_status_t(offpath_op_t**)>;
  void complete(const Post& post, const char* file = __builtin_FILE(), int line = __builtin_LINE()) const;
};

class Job {
 public:
  using Body = std::function<void(Process&)>;
  using SessionBody = std::function<void(Process&, offpath_session_t*)>;
  using TeamBody = std::function<void(Process&, offpath_session_t*, offpath_team_t*)>;
  explicit Job(uint32_t processes, uint32_t nodes = 1);
  ~Job();

  void run(const Body& body) {
    start(body);
    finish();
  }
  // Attached, each with the addresses of all; then they leave together.
  void run_attached(const SessionBody& body);
  // In a team that all have joined, too.
  void run_in_team(const TeamBody& body);
  // In the environment of each process that is not started yet.
  Job& set(const char* name, const std::string& value) {
    environment_[name] = value;
    return *this;
  }
  void start(const Body& body);
  // Waits for all; each must leave with 0 unless expect_signal says that it was killed.
  void finish();
  void expect_signal(uint32_t rank, int signal) { signals_[rank] = signal; }
  pid_t process(uint32_t rank) const { return children_[rank]; }
  Shared& shared() { return *shared_; }
  std::string folder(uint32_t node) const { return root_ + "/" + std::to_string(node); }
  // Services started by this job, by looking at all processes.
  std::vector<pid_t> services() const;
  // Kills left-overs after a test that expects them.
  void kill_services(int signal = SIGKILL) const;

 private:
  void expect_nothing_left();

  uint32_t nodes_;
  std::map<std::string, std::string> environment_;
  std::string root_;
  Shared* shared_;
  std::vector<pid_t> children_;
  std::vector<int> signals_;
};

// Waits, without a time that matters, for something to become true.
bool eventually(const std::function<bool()>& condition);
// Waits for its end, and frees it.
offpath_status_t finish(offpath_op_t* op);
// A child of a process of the job.
bool ended_well(pid_t child);
bool exists(const std::string& path);
std::vector<std::string> files_in(const std::string& folder);
offpath_session_counters_t counters_of(offpath_session_t* session);
pid_t service_of(offpath_session_t* session);  // 0: lost
// Returns when all its threads stand still, or it is gone: the signal is only on its way when it was sent.
void stop_process(pid_t process);

}  // namespace offpath::testing
