// SPDX-License-Identifier: BSD-3-Clause
// A service that wants to answer and gets no processor: the kernel gives its control group a thousandth of one, and another process of
// that group has spent that. Where no such group can be made these tests are skipped; tests/unit/base/starvation_test.cpp runs everywhere.
#include "job.hpp"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace offpath::testing {
namespace {

// A control group that gets hardly any processor time, as cgroup v1 or v2 have it.
class PoorGroup {
 public:
  PoorGroup() {
    const std::string name = "/offpath-test-" + std::to_string(getpid());
    const bool first = exists("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    folder_ = (first ? "/sys/fs/cgroup/cpu" : "/sys/fs/cgroup") + name;
    if (mkdir(folder_.c_str(), 0755) != 0) return;
    works_ =
        first ? put("cpu.cfs_period_us", "1000000") && put("cpu.cfs_quota_us", "1000") : put("cpu.max", "1000 1000000");
    lift_ = first ? "cpu.cfs_quota_us" : "cpu.max";
    rich_ = first ? "-1" : "max";
  }
  ~PoorGroup() {
    lift();
    eventually([&] { return rmdir(folder_.c_str()) == 0 || errno == ENOENT; });
  }
  bool works() const { return works_; }
  void lift() const { put(lift_, rich_); }
  bool take(pid_t process) const { return put("cgroup.procs", std::to_string(process)); }

 private:
  bool put(const std::string& file, const std::string& text) const {
    std::ofstream out(folder_ + "/" + file);
    out << text << std::flush;
    return out.good();
  }
  std::string folder_, lift_, rich_;
  bool works_ = false;
};

class StarvedService : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!group.works()) GTEST_SKIP() << "no control group with a quota of processor time can be made here (needs root)";
  }
  // The service of `session`, which then works no more: another process has spent all that they both get.
  pid_t starve(offpath_session_t* session) {
    const pid_t service = service_of(session);
    const pid_t parent = getpid();
    spender = fork();
    if (spender == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(0);
      for (volatile bool forever = true; forever;) {
      }
    }
    REQUIRE(group.take(spender) && group.take(service));
    return service;
  }
  // Posts what its peer has not, and waits until the service was found to be starved.
  offpath_op_t* wait_while_starved(offpath_session_t* session, offpath_team_t* team) {
    offpath_op_t* op = nullptr;
    REQUIRE_STATUS(offpath_alltoall(team, send, recv, 8, &op), OFFPATH_OK);
    while (offpath_session_starved_ns(session) == 0) REQUIRE_STATUS(offpath_op_wait(op, 10000000), OFFPATH_IN_PROGRESS);
    return op;
  }
  void end_spender() const {
    group.lift();
    kill(spender, SIGKILL);
    REQUIRE(waitpid(spender, nullptr, 0) == spender);
  }

  PoorGroup group;
  pid_t spender = 0;
  uint8_t send[16] = {1, 2, 3}, recv[16] = {};
};

TEST_F(StarvedService, IsWaitedFor) {
  Job job(2);
  job.set("OFFPATH_SERVICE_SILENCE_MS", "400");
  job.run_in_team([this](Process& p, offpath_session_t* session, offpath_team_t* team) {
    p.barrier();
    if (p.rank == 0) {
      const pid_t service = starve(session);
      offpath_op_t* op = wait_while_starved(session, team);
      end_spender();
      p.barrier();
      p.wait_ok(op);
      REQUIRE(service_of(session) == service && counters_of(session).silence_ms == 0);
    } else {
      p.barrier();
      offpath_op_t* op = nullptr;
      REQUIRE_STATUS(offpath_alltoall(team, send, recv, 8, &op), OFFPATH_OK);
      p.wait_ok(op);
    }
  });
}

// It is to be left, and takes its time.
TEST_F(StarvedService, IsNotEndedByWhoeverLeaves) {
  Job(2).run([this](Process& p) {
    setenv("OFFPATH_SERVICE_SILENCE_MS", "400", 1);
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    p.barrier();
    if (p.rank == 0) {
      const pid_t service = starve(session);
      offpath_op_t* op = wait_while_starved(session, team);
      p.shared.value[0] = 1;
      const pid_t child = fork();
      REQUIRE(child >= 0);
      if (child == 0) {  // in time the group has more again
        usleep(1000000);
        group.lift();
        _exit(0);
      }
      offpath_op_free(op);
      offpath_session_detach(session);
      REQUIRE(waitpid(child, nullptr, 0) == child);
      end_spender();
      REQUIRE(kill(service, 0) == 0);
    }
    p.barrier();
    if (p.rank == 1) offpath_session_detach(session);
  });
}

// Once it could run it rests, and not for want of a processor.
TEST_F(StarvedService, IsEndedWhenItIsStoppedLater) {
  Job job(2);
  job.set("OFFPATH_SERVICE_SILENCE_MS", "400");
  job.run_in_team([this](Process& p, offpath_session_t* session, offpath_team_t* team) {
    p.barrier();
    if (p.rank == 0) {
      const pid_t service = starve(session);
      offpath_op_t* op = wait_while_starved(session, team);
      kill(service, SIGSTOP);
      end_spender();
      offpath_status_t status;
      do {
        status = offpath_op_wait(op, UINT64_MAX);
      } while (status == OFFPATH_IN_PROGRESS);
      REQUIRE(status == OFFPATH_ERR_NOT_STARTED || status == OFFPATH_ERR_SERVICE_LOST);
      REQUIRE(eventually([&] { return kill(service, 0) != 0; }) && counters_of(session).silence_ms == 400);
      offpath_op_free(op);
    }
  });
}

}  // namespace
}  // namespace offpath::testing
