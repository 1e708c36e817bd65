// SPDX-License-Identifier: BSD-3-Clause
// A service that lives but does nothing: stopped, as one that loops or hangs would be. With a short limit it may be
// ended before it is stopped where the machine is busy; what follows is the same. And services that live, but have lost each other.
#include "job.hpp"

#include "../breaking.hpp"

#include <cstring>

namespace offpath::testing {
namespace {

pid_t stop_service(offpath_session_t* session) {
  const pid_t service = service_of(session);
  if (service > 0) stop_process(service);
  return service;
}

bool is_gone(pid_t process) { return process == 0 || kill(process, 0) != 0; }

TEST(SilentService, IsEndedByWhoeverWaitsForIt) {
  Job(1).run([](Process& p) {
    setenv("OFFPATH_SERVICE_SILENCE_MS", "400", 1);
    for (const bool polls : {false, true}) {
      offpath_session_t* session = nullptr;
      offpath_team_t* team = p.join(session);
      const pid_t service = stop_service(session);
      uint8_t send[8] = {}, recv[8];
      offpath_op_t* op = nullptr;
      const offpath_status_t posted = offpath_alltoall(team, send, recv, 8, &op);
      if (posted == OFFPATH_OK) {
        offpath_status_t status;
        do {
          status = polls ? offpath_op_test(op) : offpath_op_wait(op, UINT64_MAX);
        } while (status == OFFPATH_IN_PROGRESS);
        REQUIRE(status == OFFPATH_ERR_NOT_STARTED || status == OFFPATH_ERR_SERVICE_LOST || status == OFFPATH_OK);
        offpath_op_free(op);
      }
      REQUIRE(eventually([&] { return offpath_session_alive(session) == 0 && is_gone(service); }));
      uint8_t lost = 0;
      offpath_team_lost(team, &lost);
      REQUIRE(lost == OFFPATH_LOSS_SILENCE && counters_of(session).silence_ms == 400);
      offpath_session_detach(session);
      REQUIRE(files_in(p.folder).empty());
    }
  });
}

TEST(SilentService, IsEndedByWhoeverLeaves) {
  Job(1).run([](Process& p) {
    setenv("OFFPATH_SERVICE_SILENCE_MS", "400", 1);
    offpath_session_t* session = p.attach();
    const pid_t service = stop_service(session);
    offpath_session_detach(session);
    REQUIRE(eventually([&] { return is_gone(service); }));
    REQUIRE(files_in(p.folder).empty());
  });
}

// Nobody there waits, so nobody there notices.
TEST(SilentService, OfAnotherNodeIsLost) {
  Job job(2, 2);
  job.run([](Process& p) {
    setenv("OFFPATH_SERVICE_SILENCE_MS", "1000", 1);
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    uint8_t send[16] = {}, recv[16];
    offpath_op_t* op = nullptr;
    if (offpath_alltoall(team, send, recv, 8, &op) == OFFPATH_OK) {
      REQUIRE(offpath_op_wait(op, UINT64_MAX) != OFFPATH_IN_PROGRESS);
      offpath_op_free(op);
    }
    p.barrier();
    const pid_t service = p.rank == 1 ? stop_service(session) : 0;
    p.barrier();
    if (p.rank == 0) {
      const offpath_status_t posted = offpath_alltoall(team, send, recv, 8, &op);
      const offpath_status_t status = posted == OFFPATH_OK ? offpath_op_wait(op, UINT64_MAX) : posted;
      REQUIRE(status == OFFPATH_ERR_NOT_STARTED || status == OFFPATH_ERR_PEER_LOST ||
              status == OFFPATH_ERR_SERVICE_LOST);
      REQUIRE(offpath_team_broken(team) == 1);
      uint8_t lost[2] = {};
      offpath_team_lost(team, lost);
      REQUIRE(lost[1] == OFFPATH_LOSS_SILENCE || status == OFFPATH_ERR_SERVICE_LOST);
      if (posted == OFFPATH_OK) offpath_op_free(op);
    }
    p.barrier();
    if (p.rank == 1 && service > 0) kill(service, SIGKILL);
    offpath_session_detach(session);
  });
}

TEST(BrokenConnection, IsSaidToBeThatAndTheNextTeamIsWhole) {
  if (getenv("OFFPATH_TEST_DPU") != nullptr)
    GTEST_SKIP() << "the connections of an agent are links to its DPU; the tests without do this";
  Job(2, 2).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    uint8_t send[16] = {}, recv[16];
    const auto exchange = [&](offpath_team_t* on) {
      offpath_op_t* op = nullptr;
      REQUIRE_STATUS(offpath_alltoall(on, send, recv, 8, &op), OFFPATH_OK);
      REQUIRE_STATUS(finish(op), OFFPATH_OK);
    };
    exchange(team);
    p.barrier();
    if (p.rank == 0) REQUIRE(break_connections(service_of(session)) > 0);
    uint8_t lost[2] = {};
    REQUIRE(eventually([&] {
      offpath_team_lost(team, lost);
      return lost[1 - p.rank] == OFFPATH_LOSS_CONNECTION;
    }));
    REQUIRE(lost[p.rank] == 0 && offpath_team_broken(team) == 1 && offpath_session_alive(session) == 1);
    p.barrier();
    const offpath_team_params_t params = p.team_params(2);
    offpath_team_t* next = nullptr;
    REQUIRE_STATUS(offpath_team_create(session, &params, &next, nullptr), OFFPATH_OK);
    exchange(next);
    REQUIRE(offpath_team_broken(next) == 0);
    p.barrier();
    offpath_team_destroy(next);
  });
}

}  // namespace
}  // namespace offpath::testing
