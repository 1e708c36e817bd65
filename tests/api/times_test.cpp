// SPDX-License-Identifier: BSD-3-Clause
// Times of operations: there where they were asked for, in order, and refused where they cannot be.
#include "window.hpp"

#include <ctime>

namespace offpath::testing {
namespace {

uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

offpath_op_times_t empty_times() {
  offpath_op_times_t times{};
  times.struct_bytes = sizeof(times);
  return times;
}

void run_timed(uint32_t processes, uint32_t nodes, size_t bytes) {
  Job(processes, nodes).run_in_team([&](Process& p, offpath_session_t* session, offpath_team_t* team) {
    std::vector<uint8_t> send(p.size * bytes, 1), recv(p.size * bytes);
    for (const bool timed : {false, true, false}) {
      offpath_session_time_operations(session, timed ? 1 : 0);
      const uint64_t begin = now_ns();
      offpath_op_t* op = nullptr;
      REQUIRE_STATUS(offpath_alltoall(team, send.data(), recv.data(), bytes, &op), OFFPATH_OK);
      p.wait_ok(op);
      offpath_op_times_t times = empty_times();
      REQUIRE_STATUS(offpath_op_times(op, &times), timed ? OFFPATH_OK : OFFPATH_ERR_STATE);
      if (timed) {
        REQUIRE(begin <= times.posted_ns && times.posted_ns <= times.started_ns);
        REQUIRE(times.started_ns <= times.first_byte_ns && times.first_byte_ns <= times.done_ns);
        REQUIRE(times.done_ns <= now_ns() && times.last_peer < p.size);
      }
      offpath_op_free(op);
    }
  });
}

TEST(Times, OnOneNode) { run_timed(3, 1, 100'000); }
TEST(Times, OnTwoNodes) { run_timed(2, 2, 300'000); }

TEST(Times, OfAnOperationWithoutBytes) {
  Job(2).run_in_team([&](Process& p, offpath_session_t* session, offpath_team_t* team) {
    offpath_session_time_operations(session, 1);
    offpath_collective_t barrier{};
    barrier.struct_bytes = sizeof(barrier);
    barrier.kind = OFFPATH_BARRIER;
    offpath_op_t* op = nullptr;
    REQUIRE_STATUS(offpath_collective(team, &barrier, &op), OFFPATH_OK);
    p.wait_ok(op);
    offpath_op_times_t times = empty_times();
    REQUIRE_STATUS(offpath_op_times(op, &times), OFFPATH_OK);
    REQUIRE(times.first_byte_ns == 0 && times.started_ns <= times.done_ns);
    offpath_op_free(op);
  });
}

TEST(Times, AreRefusedUntilTheEndAndToStrangers) {
  Job(2).run_in_team([&](Process& p, offpath_session_t* session, offpath_team_t* team) {
    offpath_session_time_operations(session, 1);
    std::vector<uint8_t> send(2, 1), recv(2);
    if (p.rank == 1) p.barrier();  // not before the other has looked
    offpath_op_t* op = nullptr;
    REQUIRE_STATUS(offpath_alltoall(team, send.data(), recv.data(), 1, &op), OFFPATH_OK);
    offpath_op_times_t times = empty_times();
    if (p.rank == 0) {
      REQUIRE_STATUS(offpath_op_times(op, &times), OFFPATH_ERR_STATE);
      p.barrier();
    }
    p.wait_ok(op);
    times.struct_bytes = 1;
    REQUIRE_STATUS(offpath_op_times(op, &times), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_op_times(op, nullptr), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_op_times(nullptr, &times), OFFPATH_ERR_ARGUMENT);
    offpath_op_free(op);
  });
}

// Every one-sided operation of one that follows others: in order, inside the call that posted it and its flush.
void run_remote(uint32_t nodes) {
  constexpr uint64_t kLong = 300'000, kShort = 8;
  Job(2, nodes).run_in_team([&](Process& p, offpath_session_t* session, offpath_team_t* team) {
    const uint32_t peer = 1 - p.rank;
    std::vector<uint8_t> memory(kLong), local(kLong, 3);
    offpath_window_t* window = open_window(team, 1, memory.data(), memory.size());
    p.barrier();
    for (const bool timed : {false, true, false}) {
      offpath_session_time_operations(session, timed ? 1 : 0);
      const uint64_t begin = now_ns();
      std::vector<offpath_op_t*> ops;
      const auto add = [&](offpath_remote_t remote) {
        remote.flags = OFFPATH_REMOTE_FLUSHED;
        REQUIRE_STATUS(offpath_remote(window, &remote, &ops.emplace_back()), OFFPATH_OK);
      };
      add(get_of(peer, 0, local.data(), kLong));
      add(get_of(peer, 0, local.data(), kShort));
      add(put_of(peer, 0, local.data(), kLong));
      for (int i = 0; i < 2000; ++i) add(accumulate_of(peer, 0, local.data(), kShort));  // more than there are slots
      flush(window);
      const uint64_t end = now_ns();
      for (size_t i = 0; i < ops.size(); ++i) {
        // Who has flushed need not wait for any.
        REQUIRE_STATUS(offpath_op_test(ops[i]), OFFPATH_OK);
        offpath_op_times_t times = empty_times();
        REQUIRE_STATUS(offpath_op_times(ops[i], &times), timed ? OFFPATH_OK : OFFPATH_ERR_STATE);
        if (timed) {
          REQUIRE(begin <= times.posted_ns && times.posted_ns <= times.started_ns);
          REQUIRE(times.started_ns <= times.done_ns && times.done_ns <= end && times.last_peer == peer);
          REQUIRE((times.first_byte_ns != 0) == (i == 0 || (i == 2 && nodes == 2)));
          if (i == 0) REQUIRE(times.started_ns <= times.first_byte_ns && times.first_byte_ns <= times.done_ns);
        }
        offpath_op_free(ops[i]);
      }
      p.barrier();
    }
    offpath_window_destroy(window);
  });
}

TEST(Times, OfOneSidedOperationsOnOneNode) { run_remote(1); }
TEST(Times, OfOneSidedOperationsOnTwoNodes) { run_remote(2); }

TEST(Times, UnknownFlagsAreRefused) {
  Job(1).run_in_team([&](Process&, offpath_session_t*, offpath_team_t* team) {
    uint64_t memory = 0;
    offpath_window_t* window = open_window(team, 1, &memory, sizeof(memory));
    offpath_remote_t remote = put_of(0, 0, &memory, sizeof(memory));
    remote.flags = 2;
    REQUIRE_STATUS(offpath_remote(window, &remote, nullptr), OFFPATH_ERR_ARGUMENT);
    offpath_window_destroy(window);
  });
}

}  // namespace
}  // namespace offpath::testing
