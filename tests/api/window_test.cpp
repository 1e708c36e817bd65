// SPDX-License-Identifier: BSD-3-Clause
// Windows: counters, flush, range errors, several of them, memory attached later, closing.
#include "window.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

namespace offpath::testing {
namespace {

TEST(Window, CountersAndFlush) {
  Job(2, 2).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    std::vector<uint64_t> memory(8000);
    offpath_window_t* window = open_window(team, 1, memory.data(), memory.size() * 8);
    p.barrier();
    errno = 42;
    REQUIRE(offpath_window_issued(window) == 0 && offpath_window_completed(window) == 0);
    REQUIRE_STATUS(offpath_window_flush_test(window), OFFPATH_OK);
    const uint32_t peer = 1 - p.rank;
    if (p.rank == 0) {
      uint64_t value = 5;
      post(window, put_of(peer, 80, &value, 8));
      value = 6;  // ours again
      REQUIRE(offpath_window_issued(window) == 1);
      flush(window);
      REQUIRE(offpath_window_completed(window) == 1);
      // A long one in front: what comes later does not count before it.
      REQUIRE_STATUS(run(window, remote_of(OFFPATH_LOCK_EXCLUSIVE, peer, 0, 0)), OFFPATH_OK);
      p.barrier();
      p.barrier();
      post(window, OFFPATH_UNLOCK, peer);
      flush(window);
    } else {
      p.barrier();
      REQUIRE(memory[10] == 5);
      post(window, OFFPATH_LOCK_SHARED, p.rank);  // held by the other one
      const uint64_t value = 9;
      REQUIRE_STATUS(run(window, put_of(peer, 0, &value, 8)), OFFPATH_OK);
      REQUIRE(offpath_window_issued(window) == 2 && offpath_window_completed(window) == 0);
      REQUIRE_STATUS(offpath_window_flush_test(window), OFFPATH_IN_PROGRESS);
      REQUIRE_STATUS(offpath_window_flush(window, 1000000), OFFPATH_IN_PROGRESS);
      p.barrier();
      flush(window);
      REQUIRE(offpath_window_completed(window) == 2);
    }
    REQUIRE(errno == 42);
    p.barrier();
    offpath_window_destroy(window);
    offpath_window_destroy(nullptr);
  });
}

TEST(Window, OutsideIsRefusedAndFlushSaysSoOnce) {
  Job(3, 2).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    std::vector<uint8_t> memory(1000, 1);
    offpath_window_t* window = open_window(team, 1, memory.data() + 100, 800);
    p.barrier();
    std::vector<uint8_t> large(5000, 9);
    uint64_t count = 0;
    for (uint32_t target = 0; target < p.size; ++target) {
      for (const uint64_t offset : {uint64_t{800}, uint64_t{799}, UINT64_MAX, uint64_t{0} - 100, uint64_t{1} << 40}) {
        for (const uint64_t bytes : {2, 5000}) {
          REQUIRE_STATUS(run(window, put_of(target, offset, large.data(), bytes)), OFFPATH_ERR_RANGE);
          REQUIRE_STATUS(run(window, get_of(target, offset, large.data(), bytes)), OFFPATH_ERR_RANGE);
          count += 2;
        }
        REQUIRE_STATUS(run(window, accumulate_of(target, offset, large.data(), 8)), OFFPATH_ERR_RANGE);
        ++count;
      }
    }
    REQUIRE(offpath_window_completed(window) == count);
    REQUIRE_STATUS(offpath_window_flush(window, kLongNs), OFFPATH_ERR_RANGE);
    flush(window);
    post(window, put_of(0, 800, large.data(), 1));
    post(window, put_of(0, 0, large.data(), 0));
    REQUIRE_STATUS(offpath_window_flush(window, kLongNs), OFFPATH_ERR_RANGE);
    REQUIRE_STATUS(offpath_window_flush_test(window), OFFPATH_OK);
    p.barrier();
    REQUIRE(memory == std::vector<uint8_t>(1000, 1) && large == std::vector<uint8_t>(5000, 9));
    const offpath_session_counters_t counters = counters_of(session);
    REQUIRE(counters.posted_count == count + 2 && counters.failed_count == count + 1);
    // A window that the target has not opened, or has closed.
    p.barrier();
    offpath_window_t* other = p.rank == 0 ? open_window(team, 2, memory.data(), 100) : nullptr;
    if (p.rank == 0) REQUIRE_STATUS(run(other, put_of(1, 0, large.data(), 8)), OFFPATH_ERR_RANGE);
    offpath_window_destroy(other);
    offpath_window_destroy(window);
  });
}

TEST(Window, WrongArgumentsAreRefused) {
  Job(1, 1).run_in_team([](Process&, offpath_session_t*, offpath_team_t* team) {
    uint64_t memory[4] = {};
    const auto create = [&](offpath_window_params_t params) {
      offpath_window_t* window = nullptr;
      offpath_error_t error{};
      const offpath_status_t status = offpath_window_create(team, &params, &window, &error);
      REQUIRE((status == OFFPATH_OK) == (window != nullptr) && (status == OFFPATH_OK) == (error.text[0] == '\0'));
      return status;
    };
    constexpr uint32_t kSize = sizeof(offpath_window_params_t);
    REQUIRE_STATUS(create({kSize - 1, 0, 1, memory, 8}), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(create({kSize, 2, 1, memory, 8}), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(create({kSize, 0, 1, nullptr, 8}), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(create({kSize, OFFPATH_WINDOW_DYNAMIC, 1, memory, 8}), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(create({kSize, 0, 1, memory, UINT64_MAX}), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_window_create(team, nullptr, nullptr, nullptr), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(create({kSize, 0, 1, nullptr, 0}), OFFPATH_OK);
    REQUIRE_STATUS(create({kSize, 0, 1, memory, 8}), OFFPATH_ERR_ARGUMENT);  // the id is in use
    offpath_window_t* window = open_window(team, 2, memory, sizeof(memory));
    REQUIRE_STATUS(offpath_window_attach(window, memory, 8), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_window_detach(window, memory), OFFPATH_ERR_ARGUMENT);
    offpath_remote_t put = put_of(1, 0, memory, 8);  // no such member
    REQUIRE_STATUS(offpath_remote(window, &put, nullptr), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_remote(window, nullptr, nullptr), OFFPATH_ERR_ARGUMENT);
    offpath_remote_t odd = accumulate_of(0, 0, memory, 12);  // no whole elements
    REQUIRE_STATUS(run(window, odd), OFFPATH_ERR_ARGUMENT);
    odd = accumulate_of(0, 0, memory, 8, OFFPATH_OP_MAXLOC);
    REQUIRE_STATUS(run(window, odd), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_window_flush(window, kLongNs), OFFPATH_OK);  // they were never posted
    offpath_window_destroy(window);
    offpath_window_destroy(open_window(team, 2, memory, sizeof(memory)));  // the id is free again
  });
}

// More than there are slots; completed never passes issued, whoever looks.
void run_many(uint32_t nodes, size_t threads_count) {
  Job(2, nodes).run_in_team([&](Process& p, offpath_session_t*, offpath_team_t* team) {
    constexpr uint64_t kEach = 5000;
    std::vector<uint64_t> memory(threads_count * kEach);
    offpath_window_t* window = open_window(team, 1, memory.data(), memory.size() * 8);
    p.barrier();
    std::atomic<bool> stop{false};
    std::thread watcher([&] {
      for (uint64_t last = 0; !stop;) {
        const uint64_t completed = offpath_window_completed(window);
        const uint64_t issued = offpath_window_issued(window);
        REQUIRE(completed <= issued && completed >= last);
        last = completed;
        std::this_thread::yield();
      }
    });
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < threads_count; ++t) {
      threads.emplace_back([&, t] {
        for (uint64_t k = t * kEach; k < (t + 1) * kEach; ++k) {
          const uint64_t value = k + 1;
          post(window, put_of(1 - p.rank, k * 8, &value, 8));
          if (k % 1777 == 0) flush(window);
        }
        flush(window);
      });
    }
    for (std::thread& thread : threads) thread.join();
    stop = true;
    watcher.join();
    REQUIRE(offpath_window_completed(window) == memory.size() && offpath_window_issued(window) == memory.size());
    p.barrier();
    for (uint64_t k = 0; k < memory.size(); ++k) REQUIRE(memory[k] == k + 1);
    p.barrier();
    offpath_window_destroy(window);
  });
}

TEST(Window, ThousandsOutstanding) { run_many(1, 1); }
TEST(Window, ThousandsOutstandingOnTwoNodes) { run_many(2, 1); }
TEST(Window, ThousandsOutstandingFromSeveralThreads) { run_many(2, 3); }

// Operations that nobody waits for nor frees late, with handles: kept, freed unfinished, and finished.
TEST(Window, HandlesMayBeFreedUnfinished) {
  Job(2, 2).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    std::vector<uint64_t> memory(3000);
    offpath_window_t* window = open_window(team, 1, memory.data(), memory.size() * 8);
    p.barrier();
    for (uint64_t k = 0; k < memory.size(); ++k) {
      offpath_op_t* op = nullptr;
      const uint64_t value = k + 1;
      const offpath_remote_t put = put_of(1 - p.rank, k * 8, &value, 8);
      REQUIRE_STATUS(offpath_remote(window, &put, &op), OFFPATH_OK);
      offpath_op_free(op);
    }
    flush(window);
    p.barrier();
    for (uint64_t k = 0; k < memory.size(); ++k) REQUIRE(memory[k] == k + 1);
    offpath_window_destroy(window);
  });
}

TEST(Window, SeveralAtATime) {
  Job(3, 2).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    offpath_team_t* teams[] = {team, p.make_team(session, 2)};
    constexpr uint64_t kWindows = 8;
    std::vector<uint64_t> memory(kWindows * p.size);
    offpath_window_t* windows[kWindows];
    for (uint64_t w = 0; w < kWindows; ++w) {  // ids count within a team
      windows[w] = open_window(teams[w % 2], w / 2, &memory[w * p.size], p.size * 8);
    }
    p.barrier();
    for (uint64_t w = 0; w < kWindows; ++w) {
      const uint64_t value = 100 * w + p.rank;
      for (uint32_t target = 0; target < p.size; ++target) post(windows[w], put_of(target, p.rank * 8, &value, 8));
    }
    for (offpath_window_t* window : windows) flush(window);
    p.barrier();
    for (uint64_t i = 0; i < memory.size(); ++i) REQUIRE(memory[i] == 100 * (i / p.size) + i % p.size);
    p.barrier();
    for (uint64_t w = 0; w < kWindows; w += 2) offpath_window_destroy(windows[w]);
    p.barrier();
    const uint64_t value = 1;
    REQUIRE_STATUS(run(windows[1], put_of((p.rank + 1) % p.size, 0, &value, 8)), OFFPATH_OK);
    p.barrier();
    for (uint64_t w = 1; w < kWindows; w += 2) offpath_window_destroy(windows[w]);
    offpath_team_destroy(teams[1]);
  });
}

TEST(Window, MemoryIsAttachedAndDetached) {
  Job(2, 2).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    std::vector<uint64_t> first(100), second(100);
    offpath_window_t* window = open_window(team, 1, nullptr, 0, OFFPATH_WINDOW_DYNAMIC);
    REQUIRE_STATUS(offpath_window_attach(window, first.data(), 800), OFFPATH_OK);
    REQUIRE_STATUS(offpath_window_attach(window, &first[50], 8), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_window_attach(window, second.data(), 800), OFFPATH_OK);
    p.shared.value[p.rank] = static_cast<int64_t>(reinterpret_cast<uint64_t>(second.data()));
    p.barrier();
    const uint32_t peer = 1 - p.rank;
    const auto there = static_cast<uint64_t>(p.shared.value[peer].load());
    const uint64_t value = 77;
    REQUIRE_STATUS(run(window, put_of(peer, there + 16, &value, 8)), OFFPATH_OK);
    REQUIRE_STATUS(run(window, put_of(peer, there + 796, &value, 8)), OFFPATH_ERR_RANGE);
    p.barrier();
    REQUIRE(second[2] == 77);
    REQUIRE_STATUS(offpath_window_detach(window, &second[1]), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_window_detach(window, second.data()), OFFPATH_OK);
    p.barrier();
    REQUIRE_STATUS(run(window, put_of(peer, there + 16, &value, 8)), OFFPATH_ERR_RANGE);
    p.barrier();
    REQUIRE_STATUS(offpath_window_attach(window, second.data(), 24), OFFPATH_OK);
    p.barrier();
    REQUIRE_STATUS(run(window, put_of(peer, there + 16, &value, 8)), OFFPATH_OK);
    p.barrier();
    offpath_window_destroy(window);
  });
}

// The target closes while long and short ones are under way: each is done or refused, and afterwards nothing is
// touched.
TEST(Window, ClosedWithOperationsOutstanding) {
  Job(3, 2).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    constexpr uint64_t kCount = 100000;
    std::vector<uint64_t> memory(kCount), ones(kCount, 1);
    offpath_window_t* window = open_window(team, 1, memory.data(), kCount * 8);
    p.barrier();
    std::vector<offpath_op_t*> ops;
    for (int i = 0; p.rank != 0 && i < 30; ++i) {
      const offpath_remote_t remotes[] = {accumulate_of(0, 0, ones.data(), kCount * 8),
                                          accumulate_of(0, 0, ones.data(), 8), put_of(0, 8, ones.data(), 80000)};
      REQUIRE_STATUS(offpath_remote(window, &remotes[i % 3], &ops.emplace_back()), OFFPATH_OK);
    }
    if (p.rank == 0) {
      offpath_window_destroy(window);
      memory.assign(kCount, 4);
    } else {
      offpath_window_destroy(window);  // own ones go on
    }
    for (offpath_op_t* op : ops) {
      const offpath_status_t status = offpath_op_wait(op, kLongNs);
      REQUIRE(status == OFFPATH_OK || status == OFFPATH_ERR_RANGE);
      offpath_op_free(op);
    }
    p.barrier();
    if (p.rank == 0) REQUIRE(memory == std::vector<uint64_t>(kCount, 4));
  });
}

}  // namespace
}  // namespace offpath::testing
