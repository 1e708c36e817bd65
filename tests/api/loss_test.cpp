// SPDX-License-Identifier: BSD-3-Clause
// What a program sees when a service, another program or its own parent goes away. Nobody hangs, nobody dies with it.
#include "job.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace offpath::testing {
namespace {

void kill_service(offpath_session_t* session) {
  const pid_t service = service_of(session);
  REQUIRE(service > 0 && kill(service, SIGKILL) == 0);
  REQUIRE(eventually([&] { return offpath_session_alive(session) == 0; }));
}

// Posting is refused, or the operation ends so.
offpath_status_t try_alltoall(offpath_team_t* team, uint8_t* send, uint8_t* recv, uint64_t bytes) {
  offpath_op_t* op = nullptr;
  const offpath_status_t posted = offpath_alltoall(team, send, recv, bytes, &op);
  if (posted != OFFPATH_OK) return posted;
  return finish(op);
}

TEST(ServiceLost, WhileIdle) {
  Job(1).run([](Process& p) {
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    uint8_t send[8] = {}, recv[8];
    REQUIRE_STATUS(try_alltoall(team, send, recv, 8), OFFPATH_OK);
    errno = 42;
    kill_service(session);
    REQUIRE_STATUS(try_alltoall(team, send, recv, 8), OFFPATH_ERR_NOT_STARTED);
    REQUIRE(offpath_team_broken(team) == 1 && offpath_team_started(team) == 1);
    uint8_t lost = 0;
    offpath_team_lost(team, &lost);
    REQUIRE(lost == OFFPATH_LOSS_SERVICE);
    REQUIRE(service_of(session) == 0);
    REQUIRE_STATUS(offpath_session_sleep(session, offpath_session_events(session), kLongNs), OFFPATH_ERR_SERVICE_LOST);
    const offpath_team_params_t params = p.team_params(2);
    offpath_team_t* other = nullptr;
    REQUIRE_STATUS(offpath_team_create(session, &params, &other, nullptr), OFFPATH_ERR_SERVICE_LOST);
    offpath_team_destroy(team);
    offpath_session_detach(session);
    offpath_session_detach(p.attach("a new service after the old one"));
  });
}

TEST(ServiceLost, NoticedOnlyByPosting) {
  Job(1).run_in_team([](Process&, offpath_session_t* session, offpath_team_t* team) {
    uint8_t send[8] = {}, recv[8];
    const pid_t service = service_of(session);
    REQUIRE(kill(service, SIGKILL) == 0);
    REQUIRE(eventually([&] { return kill(service, 0) != 0; }));
    REQUIRE_STATUS(try_alltoall(team, send, recv, 8), OFFPATH_ERR_NOT_STARTED);
    REQUIRE(offpath_session_alive(session) == 0);
  });
}

TEST(ServiceLost, InMidOperation) {
  Job(2).run([](Process& p) {
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    p.barrier();        // both have their team before the service is gone
    if (p.rank == 1) {  // never posts
      p.barrier();
      REQUIRE(eventually([&] { return offpath_session_alive(session) == 0; }));
      return offpath_session_detach(session);
    }
    uint8_t send[16] = {}, recv[16];
    offpath_op_t *begun = nullptr, *second = nullptr;
    REQUIRE_STATUS(offpath_alltoall(team, send, recv, 8, &begun), OFFPATH_OK);
    REQUIRE(eventually([&] { return offpath_team_started(team) == 1; }));
    const pid_t service = service_of(session);
    stop_process(service);  // posted, but never begun
    REQUIRE_STATUS(offpath_alltoall(team, send, recv, 8, &second), OFFPATH_OK);
    kill_service(session);
    REQUIRE(offpath_team_started(team) == 1);
    REQUIRE_STATUS(offpath_op_wait(second, kLongNs), OFFPATH_ERR_NOT_STARTED);
    REQUIRE_STATUS(offpath_op_wait(begun, kLongNs), OFFPATH_ERR_SERVICE_LOST);
    REQUIRE_STATUS(offpath_op_test(begun), OFFPATH_ERR_SERVICE_LOST);
    REQUIRE_STATUS(try_alltoall(team, send, recv, 8), OFFPATH_ERR_NOT_STARTED);
    offpath_op_free(begun), offpath_op_free(second);
    p.barrier();
    offpath_session_detach(session);
  });
}

TEST(ServiceLost, OfAnotherNode) {
  Job(3, 3).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    uint8_t send[24] = {}, recv[24];
    REQUIRE_STATUS(try_alltoall(team, send, recv, 8), OFFPATH_OK);
    p.barrier();
    if (p.rank == 2) {
      kill_service(session);
      REQUIRE_STATUS(try_alltoall(team, send, recv, 8), OFFPATH_ERR_NOT_STARTED);
    } else {
      REQUIRE_STATUS(try_alltoall(team, send, recv, 8), OFFPATH_ERR_NOT_STARTED);
      REQUIRE(offpath_team_broken(team) == 1 && offpath_session_alive(session) == 1);
      uint8_t lost[3] = {};
      offpath_team_lost(team, lost);
      REQUIRE(lost[0] == 0 && lost[1] == 0 && lost[2] == OFFPATH_LOSS_SERVICE);
      REQUIRE_STATUS(try_alltoall(team, send, recv, 8), OFFPATH_ERR_NOT_STARTED);
    }
  });
}

// A second team with the dead node, made by the survivors afterwards, must not wait for it.
// Nodes that were set differently do not talk to each other; nothing has begun, so all can be done natively.
TEST(ServiceLost, WhereNodesDoNotSpeakAlike) {
  const struct {
    const char *variable, *one, *other;
  } kCases[] = {{"OFFPATH_FABRIC", "tcp", "ucx"}, {"OFFPATH_FABRIC_SECURITY", "auth", "encrypt"}};
  for (const auto& next : kCases) {
    Job(2, 2).run([&](Process& p) {
      setenv(next.variable, p.rank == 0 ? next.one : next.other, 1);
      offpath_session_t* session = nullptr;
      offpath_team_t* team = p.join(session);
      uint8_t send[16] = {}, recv[16];
      REQUIRE_STATUS(try_alltoall(team, send, recv, 8), OFFPATH_ERR_NOT_STARTED);
      REQUIRE(offpath_session_alive(session) == 1);
      offpath_team_destroy(team);
      p.barrier();
      offpath_session_detach(session);
    });
  }
}

TEST(ServiceLost, IsRememberedForTeamsMadeLater) {
  Job(2, 2).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    uint8_t send[16] = {}, recv[16];
    REQUIRE_STATUS(try_alltoall(team, send, recv, 8), OFFPATH_OK);
    p.barrier();
    if (p.rank == 1) {
      kill_service(session);
    } else {
      REQUIRE(eventually([&] { return offpath_team_broken(team) == 1; }));
      REQUIRE_STATUS(try_alltoall(p.make_team(session, 2), send, recv, 8), OFFPATH_ERR_NOT_STARTED);
    }
  });
}

void run_dead_client(uint32_t nodes, bool detach) {
  Job job(3, nodes);
  if (!detach) job.expect_signal(2, SIGKILL);
  job.run([&](Process& p) {
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    uint8_t send[24] = {}, recv[24];
    REQUIRE_STATUS(try_alltoall(team, send, recv, 8), OFFPATH_OK);
    offpath_op_t* op = nullptr;
    if (p.rank == 2) {
      p.barrier();  // the others have begun theirs
      REQUIRE_STATUS(offpath_alltoall(team, send, recv, 8, &op), OFFPATH_OK);
      // The other members have what they need, or not: this one's second operation cannot be done.
      REQUIRE_STATUS(offpath_alltoall(team, send, recv, 8, &op), OFFPATH_OK);
      REQUIRE(eventually([&] { return offpath_team_started(team) == 3; }));
      if (!detach) raise(SIGKILL);
      return offpath_session_detach(session);
    }
    REQUIRE_STATUS(offpath_alltoall(team, send, recv, 8, &op), OFFPATH_OK);
    REQUIRE(eventually([&] { return offpath_team_started(team) == 2; }));
    p.barrier();
    const offpath_status_t first = offpath_op_wait(op, kLongNs);
    REQUIRE(first == OFFPATH_OK || first == OFFPATH_ERR_PEER_LOST);
    offpath_op_free(op);
    REQUIRE(eventually([&] { return offpath_team_broken(team) == 1; }));
    uint8_t lost[3] = {};
    offpath_team_lost(team, lost);
    REQUIRE(lost[2] == OFFPATH_LOSS_PROCESS && lost[p.rank] == 0);
    const offpath_status_t next = try_alltoall(team, send, recv, 8);
    REQUIRE(next == OFFPATH_ERR_PEER_LOST || next == OFFPATH_ERR_NOT_STARTED);
    REQUIRE(offpath_session_alive(session) == 1);
    p.barrier(2);
    offpath_session_detach(session);
  });
}

TEST(ProcessLost, OnTheSameNode) { run_dead_client(1, false); }
TEST(ProcessLost, OnAnotherNode) { run_dead_client(3, false); }
TEST(ProcessLost, DetachingInMidOperationIsLikeIt) { run_dead_client(1, true); }
TEST(ProcessLost, DetachingInMidOperationOnAnotherNodeIsLikeIt) { run_dead_client(3, true); }

TEST(ProcessLost, ServedToTheEndItsPeersAreTold) {
  Job job(2);
  job.expect_signal(1, SIGKILL);
  job.run([](Process& p) {
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    uint8_t send[16] = {}, recv[16];
    if (p.rank == 1) {
      offpath_op_t* op = nullptr;
      REQUIRE_STATUS(offpath_alltoall(team, send, recv, 8, &op), OFFPATH_OK);
      REQUIRE(eventually([&] { return offpath_team_started(team) == 1; }));
      p.barrier();
      raise(SIGKILL);
    }
    p.barrier();
    offpath_status_t status = try_alltoall(team, send, recv, 8);
    if (status == OFFPATH_OK) status = try_alltoall(team, send, recv, 8);  // the first one was faster than the death
    // NOT_STARTED: refused outright where the death was known before posting.
    REQUIRE(status == OFFPATH_ERR_PEER_LOST || (status == OFFPATH_ERR_NOT_STARTED && offpath_team_broken(team) == 1));
    offpath_session_detach(session);
  });
}

TEST(Fork, TheChildMayNotUseTheSession) {
  Job(1).run([](Process& p) {
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    uint8_t send[8] = {1, 2, 3}, recv[8];
    offpath_op_t* op = nullptr;
    REQUIRE_STATUS(offpath_alltoall(team, send, recv, 8, &op), OFFPATH_OK);
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      uint8_t address[OFFPATH_ADDRESS_MAX_BYTES];
      size_t bytes = 0;
      const uint64_t counts = 8;
      const int64_t displ = 0;
      offpath_op_t* other = nullptr;
      offpath_team_t* another = nullptr;
      offpath_session_counters_t counters{};
      counters.struct_bytes = sizeof(counters);
      const offpath_team_params_t params = p.team_params(2);
      REQUIRE(offpath_session_alive(session) == 0);
      REQUIRE_STATUS(offpath_alltoall(team, send, recv, 8, &other), OFFPATH_ERR_STATE);
      REQUIRE_STATUS(offpath_alltoallv(team, send, &counts, &displ, recv, &counts, &displ, &other), OFFPATH_ERR_STATE);
      REQUIRE_STATUS(offpath_team_create(session, &params, &another, nullptr), OFFPATH_ERR_STATE);
      REQUIRE_STATUS(offpath_session_sleep(session, offpath_session_events(session), 1000), OFFPATH_ERR_STATE);
      REQUIRE_STATUS(offpath_session_address(session, address, sizeof(address), &bytes), OFFPATH_ERR_STATE);
      REQUIRE_STATUS(offpath_session_counters(session, &counters), OFFPATH_ERR_STATE);
      REQUIRE_STATUS(offpath_op_test(op), OFFPATH_ERR_STATE);
      REQUIRE_STATUS(offpath_op_help(op), OFFPATH_ERR_STATE);
      REQUIRE_STATUS(finish(op), OFFPATH_ERR_STATE);
      offpath_team_destroy(team);
      offpath_session_detach(session);
      _exit(0);
    }
    REQUIRE(ended_well(child));
    p.wait_ok(op);  // the parent's is unharmed
    offpath_op_free(op);
    REQUIRE_STATUS(try_alltoall(team, send, recv, 8), OFFPATH_OK);
    REQUIRE(memcmp(send, recv, 8) == 0);
    offpath_session_detach(session);
  });
}

// A program that forks helpers and is killed: the service must see the death though a child has the socket too.
TEST(Fork, AChildDoesNotKeepTheServiceAlive) {
  Job job(1);
  job.run([&](Process& p) {
    offpath_session_t* session = p.attach();
    int hold[2];
    REQUIRE(pipe(hold) == 0);
    const pid_t child = fork();
    if (child == 0) {
      char byte;
      close(hold[1]);
      [[maybe_unused]] const ssize_t got = read(hold[0], &byte, 1);
      _exit(0);
    }
    offpath_session_detach(session);
    REQUIRE(eventually([&] { return job.services().empty(); }));
    close(hold[1]);
    waitpid(child, nullptr, 0);
  });
}

// Killed while a child of it lives on and has the socket, too.
TEST(Fork, AChildDoesNotHideTheDeathOfItsParent) {
  Job job(1);
  job.expect_signal(0, SIGKILL);
  job.run([&](Process& p) {
    p.attach();
    if (fork() == 0) {
      alarm(kPatienceSeconds);
      p.shared.value[0] = eventually([&] { return job.services().empty(); }) ? 1 : -1;
      _exit(0);
    }
    raise(SIGKILL);
  });
  EXPECT_TRUE(eventually([&] { return job.shared().value[0] != 0; }));
  EXPECT_EQ(job.shared().value[0], 1) << "the service waits for the child";
}

}  // namespace
}  // namespace offpath::testing
