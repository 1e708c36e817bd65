// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations when a service or a process goes away: they end, flush returns, the living go on.
#include "window.hpp"

#include <unistd.h>

namespace offpath::testing {
namespace {

bool is_loss(offpath_status_t status) { return status == OFFPATH_ERR_PEER_LOST || status == OFFPATH_ERR_NOT_STARTED; }

// Member 2 dies, or its service, while it holds a lock and is asked for things.
// For OFFPATH_FABRIC=ucx: UCX 1.13 aborts when a peer dies while it still shakes hands with it (ucp_request.c: "got REP message").
void meet_everybody(offpath_window_t* window, uint32_t ranks) {
  const uint64_t nothing = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) REQUIRE_STATUS(run(window, put_of(rank, 0, &nothing, 8)), OFFPATH_OK);
}

void run_dead_target(uint32_t nodes, bool service_too) {
  Job job(3, nodes);
  if (!service_too) job.expect_signal(2, SIGKILL);
  job.run([&](Process& p) {
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    std::vector<uint64_t> memory(200000), data(200000, 1);
    offpath_window_t* window = open_window(team, 1, memory.data(), memory.size() * 8);
    p.barrier();
    meet_everybody(window, 3);
    p.barrier();
    if (p.rank == 2) {
      REQUIRE_STATUS(run(window, remote_of(OFFPATH_LOCK_EXCLUSIVE, 0, 0, 0)), OFFPATH_OK);  // and dies with it
      REQUIRE_STATUS(run(window, remote_of(OFFPATH_LOCK_EXCLUSIVE, 2, 0, 0)), OFFPATH_OK);
      p.barrier();
      p.barrier();
      if (!service_too) raise(SIGKILL);
      REQUIRE(kill(service_of(session), SIGKILL) == 0);
      REQUIRE(eventually([&] { return offpath_session_alive(session) == 0; }));
      return offpath_session_detach(session);
    }
    p.barrier();
    offpath_op_t *lock = nullptr, *lost = nullptr;
    const offpath_remote_t living = remote_of(OFFPATH_LOCK_EXCLUSIVE, 0, 0, 0);
    const offpath_remote_t dying = remote_of(OFFPATH_LOCK_SHARED, 2, 0, 0);
    REQUIRE_STATUS(offpath_remote(window, &living, &lock), OFFPATH_OK);
    REQUIRE_STATUS(offpath_remote(window, &dying, &lost), OFFPATH_OK);
    REQUIRE_STATUS(offpath_op_wait(lock, 1000000), OFFPATH_IN_PROGRESS);
    p.barrier();
    for (int i = 0; i < 20; ++i) {
      const offpath_remote_t remotes[] = {put_of(2, 0, data.data(), data.size() * 8), put_of(2, 0, data.data(), 8),
                                          accumulate_of(2, 0, data.data(), data.size() * 8),
                                          accumulate_of(2, 0, data.data(), 8)};
      const offpath_status_t posted = offpath_remote(window, &remotes[i % 4], nullptr);
      REQUIRE(posted == OFFPATH_OK || posted == OFFPATH_ERR_NOT_STARTED);
    }
    REQUIRE(is_loss(offpath_op_wait(lost, kLongNs)));
    p.wait_ok(lock);  // the dead one's lock has ended
    offpath_op_free(lock), offpath_op_free(lost);
    REQUIRE(eventually([&] { return offpath_team_broken(team) == 1; }));
    const uint64_t value = 5;
    const offpath_remote_t refused = put_of(2, 0, &value, 8);
    REQUIRE_STATUS(offpath_remote(window, &refused, nullptr), OFFPATH_ERR_NOT_STARTED);
    // The living go on.
    REQUIRE_STATUS(run(window, put_of(1 - p.rank, 8, &value, 8)), OFFPATH_OK);
    REQUIRE_STATUS(run(window, remote_of(OFFPATH_UNLOCK, 0, 0, 0)), OFFPATH_OK);
    REQUIRE(is_loss(offpath_window_flush(window, kLongNs)));
    flush(window);
    REQUIRE(offpath_session_alive(session) == 1);
    p.barrier(2);
    REQUIRE(memory[1] == 5);
    offpath_window_destroy(window);
    p.barrier(2);
    offpath_session_detach(session);
  });
}

TEST(TargetLost, ProcessOnTheSameNode) { run_dead_target(1, false); }
TEST(TargetLost, ProcessOnAnotherNode) { run_dead_target(3, false); }
TEST(TargetLost, ServiceOfAnotherNode) { run_dead_target(3, true); }

// Origins die while their long operations are under way at a target that lives.
TEST(OriginLost, ItsLanesAndMemoryAreFreeAgain) {
  Job job(3, 3);
  job.expect_signal(2, SIGKILL);
  job.run([&](Process& p) {
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    std::vector<uint64_t> memory(1 << 20), data(1 << 20, 1);
    offpath_window_t* window = open_window(team, 1, memory.data(), memory.size() * 8);
    p.barrier();
    if (p.rank == 2) {
      for (int i = 0; i < 20; ++i) {
        post(window, accumulate_of(0, 0, data.data(), data.size() * 8));
        post(window, accumulate_of(0, 0, data.data(), 8));
      }
      p.barrier();
      raise(SIGKILL);
    }
    p.barrier();
    if (p.rank == 1) {
      REQUIRE_STATUS(run(window, accumulate_of(0, 0, data.data(), data.size() * 8)), OFFPATH_OK);
      REQUIRE_STATUS(run(window, accumulate_of(0, 0, data.data(), 8)), OFFPATH_OK);
    }
    p.barrier(2);
    offpath_window_destroy(window);  // returns: nothing works on it any more
    p.barrier(2);
    offpath_session_detach(session);
  });
}

TEST(OwnServiceLost, OperationsEndAndFlushReturns) {
  Job(2, 2).run([](Process& p) {
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    uint64_t memory[4] = {}, value = 3;
    offpath_window_t* window = open_window(team, 1, memory, sizeof(memory));
    p.barrier();
    if (p.rank == 1) {
      REQUIRE_STATUS(run(window, remote_of(OFFPATH_LOCK_EXCLUSIVE, 1, 0, 0)), OFFPATH_OK);
      p.barrier();
      p.barrier();
      post(window, OFFPATH_UNLOCK, 1);
      flush(window);
      offpath_window_destroy(window);
      return offpath_session_detach(session);
    }
    p.barrier();
    offpath_op_t *begun = nullptr, *waiting = nullptr;
    const offpath_remote_t lock = remote_of(OFFPATH_LOCK_EXCLUSIVE, 1, 0, 0);
    const offpath_remote_t put = put_of(1, 0, &value, 8);
    REQUIRE_STATUS(offpath_remote(window, &lock, &begun), OFFPATH_OK);
    REQUIRE_STATUS(run(window, put), OFFPATH_OK);
    const pid_t service = service_of(session);
    stop_process(service);
    for (int i = 0; i < 3000; ++i) post(window, put);  // more than there are slots
    REQUIRE_STATUS(offpath_remote(window, &put, &waiting), OFFPATH_OK);
    REQUIRE(kill(service, SIGKILL) == 0);
    REQUIRE_STATUS(offpath_window_flush(window, kLongNs), OFFPATH_ERR_SERVICE_LOST);
    REQUIRE_STATUS(offpath_window_flush_test(window), OFFPATH_ERR_SERVICE_LOST);
    REQUIRE_STATUS(offpath_op_wait(begun, kLongNs), OFFPATH_ERR_SERVICE_LOST);
    REQUIRE_STATUS(offpath_op_wait(waiting, kLongNs), OFFPATH_ERR_NOT_STARTED);
    REQUIRE(offpath_window_completed(window) <= offpath_window_issued(window));
    REQUIRE_STATUS(offpath_remote(window, &put, nullptr), OFFPATH_ERR_NOT_STARTED);
    offpath_window_t* other = nullptr;
    const offpath_window_params_t params{sizeof(params), 0, 2, memory, 8};
    REQUIRE_STATUS(offpath_window_create(team, &params, &other, nullptr), OFFPATH_ERR_SERVICE_LOST);
    offpath_op_free(begun), offpath_op_free(waiting);
    offpath_window_destroy(window);
    p.barrier();
    offpath_session_detach(session);
  });
}

}  // namespace
}  // namespace offpath::testing
