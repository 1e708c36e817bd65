// SPDX-License-Identifier: BSD-3-Clause
// Accumulates are atomic with each other and keep their order; locks keep others out.
#include "window.hpp"

#include <cstdlib>

namespace offpath::testing {
namespace {

constexpr uint64_t kLong = 2000;  // elements: more than short ones have

void run_members(uint32_t processes, uint32_t nodes,
                 const std::function<void(Process&, offpath_window_t*, uint64_t*)>& body) {
  Job(processes, nodes).run_in_team([&](Process& p, offpath_session_t*, offpath_team_t* team) {
    std::vector<uint64_t> memory(kLong + 8);
    offpath_window_t* window = open_window(team, 1, memory.data(), memory.size() * 8);
    p.barrier();
    body(p, window, memory.data());
    flush(window);
    REQUIRE(offpath_window_completed(window) == offpath_window_issued(window));
    p.barrier();
    offpath_window_destroy(window);
  });
}

// Short and long ones on the same elements, from all members, to a member that takes part itself.
void run_totals(uint32_t processes, uint32_t nodes) {
  run_members(processes, nodes, [](Process& p, offpath_window_t* window, uint64_t* memory) {
    constexpr uint64_t kRounds = 50;
    const std::vector<uint64_t> ones(kLong, 1);
    std::vector<uint64_t> old(kRounds);
    for (uint64_t round = 0; round < kRounds; ++round) {
      post(window, accumulate_of(0, 0, ones.data(), 8));
      post(window, accumulate_of(0, 0, ones.data(), kLong * 8));
      post(window, fetch_of(0, 8, ones.data(), &old[round], 8));
    }
    flush(window);
    for (uint64_t round = 1; round < kRounds; ++round) REQUIRE(old[round] > old[round - 1]);
    p.barrier();
    if (p.rank == 0) {
      REQUIRE(memory[0] == 2 * kRounds * p.size);
      REQUIRE(memory[1] == 2 * kRounds * p.size);
      for (uint64_t i = 2; i < kLong; ++i) REQUIRE(memory[i] == kRounds * p.size);
    }
  });
}

TEST(Atomics, TotalsAreExactOnOneNode) { run_totals(3, 1); }
TEST(Atomics, TotalsAreExactOnTwoNodes) { run_totals(4, 2); }
TEST(Atomics, TotalsAreExactWithSeveralWorkers) {
  setenv("OFFPATH_SERVICE_WORKERS", "3", 1);
  run_totals(4, 2);
  unsetenv("OFFPATH_SERVICE_WORKERS");
}

TEST(Atomics, OfOneOriginKeepTheirOrder) {
  run_members(4, 2, [](Process& p, offpath_window_t* window, uint64_t*) {
    const uint32_t target = (p.rank + 1) % p.size;
    std::vector<uint64_t> values(kLong);
    uint64_t seen[40];
    for (uint64_t round = 0; round < 40; ++round) {
      const uint64_t count = round % 3 == 0 ? kLong : 4;
      std::vector<uint64_t> data(kLong, round + 1);
      post(window, fetch_of(target, 0, data.data(), values.data(), count * 8, OFFPATH_OP_REPLACE));
      post(window, fetch_of(target, 0, nullptr, &seen[round], 8, OFFPATH_OP_NO_OP));
      if (count == kLong) flush(window);  // `data` must last as long
    }
    flush(window);
    for (uint64_t round = 0; round < 40; ++round) REQUIRE(seen[round] == round + 1);
  });
}

TEST(Atomics, ComparedAndSwapped) {
  run_members(4, 2, [](Process& p, offpath_window_t* window, uint64_t* memory) {
    for (int done = 0; done < 30;) {  // a counter without fetch and add
      uint64_t now = 0, old = 0;
      REQUIRE_STATUS(run(window, fetch_of(0, 0, nullptr, &now, 8, OFFPATH_OP_NO_OP)), OFFPATH_OK);
      const uint64_t words[2] = {now + 1, now};
      offpath_remote_t swap = remote_of(OFFPATH_COMPARE_AND_SWAP, 0, 0, 8);
      swap.element = OFFPATH_ELEMENT_U64;
      swap.send = block(words, sizeof(words));
      swap.result = block(&old, 8);
      REQUIRE_STATUS(run(window, swap), OFFPATH_OK);
      done += old == now;
    }
    p.barrier();
    if (p.rank == 0) REQUIRE(memory[0] == 30 * p.size);
  });
}

// What is read and written back under the lock is nobody else's.
TEST(Locks, ExclusiveOnesKeepOthersOut) {
  run_members(4, 2, [](Process& p, offpath_window_t* window, uint64_t* memory) {
    for (int round = 0; round < 30; ++round) {
      uint64_t value = 0;
      REQUIRE_STATUS(run(window, remote_of(OFFPATH_LOCK_EXCLUSIVE, 1, 0, 0)), OFFPATH_OK);
      REQUIRE_STATUS(run(window, get_of(1, 0, &value, 8)), OFFPATH_OK);
      ++value;
      REQUIRE_STATUS(run(window, put_of(1, 0, &value, 8)), OFFPATH_OK);
      post(window, OFFPATH_UNLOCK, 1);
    }
    flush(window);
    p.barrier();
    if (p.rank == 1) REQUIRE(memory[0] == 30 * p.size);
  });
}

TEST(Locks, SharedOnesDoNot) {
  run_members(3, 1, [](Process& p, offpath_window_t* window, uint64_t*) {
    REQUIRE_STATUS(run(window, remote_of(OFFPATH_LOCK_SHARED, 0, 0, 0)), OFFPATH_OK);
    p.barrier();  // all hold it
    REQUIRE_STATUS(run(window, remote_of(OFFPATH_LOCK_SHARED, 0, 0, 0)), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_window_flush(window, kLongNs), OFFPATH_ERR_ARGUMENT);
    flush(window);
    p.barrier();
    if (p.rank == 1) {
      post(window, OFFPATH_UNLOCK, 0);
      offpath_op_t* op = nullptr;
      const offpath_remote_t lock = remote_of(OFFPATH_LOCK_EXCLUSIVE, 0, 0, 0);
      REQUIRE_STATUS(offpath_remote(window, &lock, &op), OFFPATH_OK);
      REQUIRE_STATUS(offpath_op_wait(op, 20000000), OFFPATH_IN_PROGRESS);
      p.barrier();
      p.finish_ok(op);
    } else {
      p.barrier();
    }
    post(window, OFFPATH_UNLOCK, 0);
    flush(window);
    REQUIRE_STATUS(run(window, remote_of(OFFPATH_UNLOCK, 0, 0, 0)), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_window_flush(window, kLongNs), OFFPATH_ERR_ARGUMENT);
  });
}

}  // namespace
}  // namespace offpath::testing
