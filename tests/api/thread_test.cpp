// SPDX-License-Identifier: BSD-3-Clause
// Threads of one process that share a session, and operations too. Most telling under the thread sanitizer.
#include "job.hpp"

#include <barrier>
#include <thread>

namespace offpath::testing {
namespace {

// More operations than slots, so that some are queued and submitted by whichever thread looks. Every thread waits for
// the operations of all, and describes some.
TEST(Threads, ShareASessionAndItsOperations) {
  Job(2).run_attached([](Process& p, offpath_session_t* session) {
    constexpr size_t kThreads = 3, kEach = 600;
    offpath_team_t* teams[kThreads];
    for (size_t t = 0; t < kThreads; ++t) teams[t] = p.make_team(session, static_cast<uint8_t>(t));
    std::vector<uint32_t> send(kThreads * kEach * 2), recv(send.size());
    std::vector<offpath_op_t*> ops(kThreads * kEach);
    std::barrier together(kThreads);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (size_t k = t * kEach; k < (t + 1) * kEach; ++k) {
          send[2 * k] = send[2 * k + 1] = static_cast<uint32_t>(2 * k + p.rank);
          REQUIRE_STATUS(offpath_alltoall(teams[t], &send[2 * k], &recv[2 * k], 4, &ops[k]), OFFPATH_OK);
        }
        together.arrive_and_wait();
        for (size_t i = 0; i < ops.size(); ++i) {
          offpath_op_t* op = ops[(i + t * kEach) % ops.size()];
          char text[100];
          if (i % 7 == t) offpath_op_describe(op, text, sizeof(text));
          p.wait_ok(op);
        }
        together.arrive_and_wait();
        for (size_t k = t * kEach; k < (t + 1) * kEach; ++k) {
          REQUIRE(recv[2 * k] == 2 * k && recv[2 * k + 1] == 2 * k + 1);
          offpath_op_free(ops[k]);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

}  // namespace
}  // namespace offpath::testing
