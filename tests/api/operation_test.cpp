// SPDX-License-Identifier: BSD-3-Clause
// Operations: bytes arrive where they belong, on one node and several, and every documented way to fail is met.
#include "job.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <random>

namespace offpath::testing {
namespace {

uint8_t byte_of(uint64_t from, uint64_t to, uint64_t at, uint64_t round) {
  return static_cast<uint8_t>(from * 31 + to * 17 + at * 7 + at / 253 + round * 3 + 1);
}

void run_alltoall(uint32_t processes, uint32_t nodes, const std::vector<size_t>& sizes) {
  Job(processes, nodes).run_in_team([&](Process& p, offpath_session_t*, offpath_team_t* team) {
    for (const size_t bytes : sizes) {
      for (const bool in_place : {false, true}) {
        std::vector<uint8_t> send(p.size * bytes + 1), recv(p.size * bytes + 1, 0xEE);
        std::vector<uint8_t>& source = in_place ? recv : send;
        for (uint32_t to = 0; to < p.size; ++to) {
          for (size_t i = 0; i < bytes; ++i) source[to * bytes + i] = byte_of(p.rank, to, i, bytes);
        }
        offpath_op_t* op = nullptr;
        REQUIRE_STATUS(offpath_alltoall(team, in_place ? OFFPATH_IN_PLACE : send.data(), recv.data(), bytes, &op),
                       OFFPATH_OK);
        p.wait_ok(op);
        REQUIRE_STATUS(offpath_op_test(op), OFFPATH_OK);
        REQUIRE_STATUS(offpath_op_help(op), OFFPATH_OK);
        for (uint32_t from = 0; from < p.size; ++from) {
          for (size_t i = 0; i < bytes; ++i) REQUIRE(recv[from * bytes + i] == byte_of(from, p.rank, i, bytes));
        }
        REQUIRE(recv.back() == 0xEE);
        offpath_op_free(op);
      }
    }
  });
}

TEST(Alltoall, OnOneNode) { run_alltoall(4, 1, {0, 1, 100, 70000, 700000}); }
TEST(Alltoall, OnTwoNodes) { run_alltoall(4, 2, {0, 1, 100, 70000, 700000}); }
TEST(Alltoall, OnFourNodes) { run_alltoall(4, 4, {0, 1, 8192, 300000}); }
TEST(Alltoall, BlocksOfManyMegabytes) { run_alltoall(2, 2, {(9 << 20) + 13}); }

TEST(Alltoall, WithSeveralWorkers) {
  setenv("OFFPATH_SERVICE_WORKERS", "3", 1);
  run_alltoall(6, 1, {1, 70000});
  run_alltoall(6, 2, {1, 70000});
  unsetenv("OFFPATH_SERVICE_WORKERS");
}

// Random counts, blocks in any order, displacements before and behind the pointer given.
void run_alltoallv(bool in_place) {
  Job(5, 2).run_in_team([&](Process& p, offpath_session_t*, offpath_team_t* team) {
    for (uint64_t round = 0; round < 10; ++round) {
      std::mt19937_64 random(round);  // all know all counts
      std::vector<std::vector<uint64_t>> counts(p.size, std::vector<uint64_t>(p.size));
      for (uint32_t i = 0; i < p.size; ++i) {
        for (uint32_t j = 0; j < p.size; ++j)
          counts[i][j] = random() % 3 == 0 ? 0 : random() % (round == 9 ? 900000 : 5000);
      }
      if (in_place) {
        for (uint32_t i = 0; i < p.size; ++i) {
          for (uint32_t j = 0; j < i; ++j) counts[i][j] = counts[j][i];
        }
      }
      const auto place = [](const std::vector<uint64_t>& bytes, std::vector<int64_t>& displs) {
        int64_t at = 3;
        displs.resize(bytes.size());
        for (size_t i = bytes.size(); i-- > 0; at += 5) displs[i] = at, at += static_cast<int64_t>(bytes[i]);
        return static_cast<size_t>(at);
      };
      std::vector<uint64_t> in(p.size);
      for (uint32_t i = 0; i < p.size; ++i) in[i] = counts[i][p.rank];
      std::vector<int64_t> send_displs, recv_displs;
      std::vector<uint8_t> send(place(counts[p.rank], send_displs)), recv(place(in, recv_displs), 0xEE);
      std::vector<uint8_t> expected = recv;
      for (uint32_t j = 0; j < p.size; ++j) {
        for (uint64_t i = 0; i < counts[p.rank][j]; ++i) {
          const uint8_t value = byte_of(p.rank, j, i, round);
          in_place ? recv[recv_displs[j] + i] = value : send[send_displs[j] + i] = value;
        }
        for (uint64_t i = 0; i < in[j]; ++i) expected[recv_displs[j] + i] = byte_of(j, p.rank, i, round);
      }
      for (uint32_t j = 0; j < p.size; ++j) send_displs[j] -= 1000, recv_displs[j] -= 2000;
      offpath_op_t* op = nullptr;
      REQUIRE_STATUS(
          offpath_alltoallv(team, in_place ? OFFPATH_IN_PLACE : send.data() + 1000,
                            in_place ? nullptr : counts[p.rank].data(), in_place ? nullptr : send_displs.data(),
                            recv.data() + 2000, in.data(), recv_displs.data(), &op),
          OFFPATH_OK);
      std::fill(in.begin(), in.end(), 0);  // arrays are copied: ours again
      std::fill(recv_displs.begin(), recv_displs.end(), 0);
      p.finish_ok(op);
      REQUIRE(recv == expected);
    }
  });
}

TEST(Alltoallv, RandomCounts) { run_alltoallv(false); }
TEST(Alltoallv, InPlace) { run_alltoallv(true); }

// More outstanding than there are slots, waited for in both orders: the last one may not need the first to be freed.
void run_many(uint32_t nodes, bool backwards) {
  Job(2, nodes).run_in_team([&](Process& p, offpath_session_t* session, offpath_team_t* team) {
    constexpr size_t kMany = 3000;
    std::vector<uint32_t> send(2 * kMany), recv(2 * kMany);
    std::vector<offpath_op_t*> ops(kMany);
    for (uint32_t k = 0; k < kMany; ++k) {
      send[2 * k] = send[2 * k + 1] = k * 2 + p.rank;
      REQUIRE_STATUS(offpath_alltoall(team, &send[2 * k], &recv[2 * k], 4, &ops[k]), OFFPATH_OK);
    }
    for (size_t i = 0; i < kMany; ++i) p.wait_ok(ops[backwards ? kMany - 1 - i : i]);
    for (uint32_t k = 0; k < kMany; ++k) {
      REQUIRE(recv[2 * k] == k * 2 && recv[2 * k + 1] == k * 2 + 1);
      offpath_op_free(ops[k]);
    }
    const offpath_session_counters_t counters = counters_of(session);
    REQUIRE(counters.posted_count == kMany && counters.failed_count == 0);
    REQUIRE(counters.completed_count == kMany);  // teams are no operations
  });
}

TEST(ManyOperations, WaitedForInOrder) { run_many(1, false); }
TEST(ManyOperations, WaitedForBackwards) { run_many(1, true); }
TEST(ManyOperations, WaitedForBackwardsOnTwoNodes) { run_many(2, true); }

TEST(ManyOperations, HeldBackWhereTheServiceHasNoRoom) {
  Job(2, 1).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    constexpr size_t kMany = 1100;
    std::vector<uint32_t> send(2 * kMany), recv(2 * kMany);
    std::vector<offpath_op_t*> ops(kMany);
    REQUIRE(offpath_session_holds_back(session) == 0);
    if (p.rank == 1) p.barrier();  // nothing ends before
    for (uint32_t k = 0; k < kMany; ++k) {
      REQUIRE_STATUS(offpath_alltoall(team, &send[2 * k], &recv[2 * k], 4, &ops[k]), OFFPATH_OK);
    }
    if (p.rank == 0) REQUIRE(offpath_session_holds_back(session) == 1);
    if (p.rank == 0) p.barrier();
    for (offpath_op_t* op : ops) p.finish_ok(op);
    REQUIRE(offpath_session_holds_back(session) == 0);
  });
}

// Rank 0 calls nothing of ours until the other one has completed all of its own.
TEST(ManyOperations, MoveOnWhateverTheProgramDoes) {
  Job(2, 1).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    constexpr size_t kMany = 3000;
    std::vector<uint32_t> send(2 * kMany), recv(2 * kMany);
    std::vector<offpath_op_t*> ops(kMany);
    if (p.rank == 1) p.barrier();  // nothing ends before
    for (uint32_t k = 0; k < kMany; ++k) {
      send[2 * k] = send[2 * k + 1] = k * 2 + p.rank;
      REQUIRE_STATUS(offpath_alltoall(team, &send[2 * k], &recv[2 * k], 4, &ops[k]), OFFPATH_OK);
    }
    if (p.rank == 0) p.barrier();
    if (p.rank == 0) p.barrier();
    for (uint32_t k = 0; k < kMany; ++k) {
      p.finish_ok(ops[k]);
      REQUIRE(recv[2 * k] == k * 2 && recv[2 * k + 1] == k * 2 + 1);
    }
    if (p.rank == 1) p.barrier();
  });
}

TEST(Operation, UnfinishedOnesSayWhatTheyWaitFor) {
  Job(3, 2).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    uint8_t send[30] = {}, recv[30];
    offpath_op_t* op = nullptr;
    if (p.rank == 2) p.barrier();
    REQUIRE_STATUS(offpath_alltoall(team, send, recv, 10, &op), OFFPATH_OK);
    if (p.rank != 2) {
      REQUIRE_STATUS(offpath_op_wait(op, 0), OFFPATH_IN_PROGRESS);
      REQUIRE_STATUS(offpath_op_wait(op, 20000000), OFFPATH_IN_PROGRESS);
      REQUIRE_STATUS(offpath_op_test(op), OFFPATH_IN_PROGRESS);
      REQUIRE_STATUS(offpath_op_help(op), OFFPATH_IN_PROGRESS);
      char text[200] = "", tiny[6];
      REQUIRE(eventually([&] {  // the other one of the two arrives by and by
        offpath_op_describe(op, text, sizeof(text));
        return strstr(text, "rank 2") != nullptr;
      }));
      REQUIRE(strstr(text, "alltoall #0") == text);
      memset(tiny, 'x', sizeof(tiny));
      offpath_op_describe(op, tiny, sizeof(tiny));
      REQUIRE(strcmp(tiny, "allto") == 0);
      offpath_op_describe(op, tiny, 0);
      p.barrier();
    }
    p.wait_ok(op);
    char text[200] = "";
    offpath_op_describe(op, text, sizeof(text));
    REQUIRE(strstr(text, "done") != nullptr);
    offpath_op_free(op);
  });
}

TEST(Operation, MayBeFreedUnfinished) {
  Job(2, 2).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    std::vector<uint8_t> send(400000, static_cast<uint8_t>(p.rank + 1)), recv(400000);
    offpath_op_free(nullptr);
    for (int round = 0; round < 20; ++round) {
      offpath_op_t *first = nullptr, *second = nullptr;
      REQUIRE_STATUS(offpath_alltoall(team, send.data(), recv.data(), 200000, &first), OFFPATH_OK);
      offpath_op_free(first);
      uint8_t from[2] = {}, to[2];
      REQUIRE_STATUS(offpath_alltoall(team, from, to, 1, &second), OFFPATH_OK);
      p.finish_ok(second);
    }
    offpath_session_counters_t counters{};
    counters.struct_bytes = sizeof(counters);
    constexpr uint64_t kBytes = 20 * 200001;
    REQUIRE(eventually([&] {  // also what the other one takes from here, or its memory would go under that
      return offpath_session_counters(session, &counters) == OFFPATH_OK && counters.pulled_bytes == kBytes &&
             counters.served_bytes == kBytes;
    }));
    REQUIRE(counters.failed_count == 0);
  });
}

TEST(Operation, CountersTellWhereBytesWent) {
  Job(4, 2).run_in_team([](Process&, offpath_session_t* session, offpath_team_t* team) {
    std::vector<uint8_t> send(4000), recv(4000);
    const uint32_t seen = offpath_session_events(session);
    offpath_op_t* op = nullptr;
    REQUIRE_STATUS(offpath_alltoall(team, send.data(), recv.data(), 1000, &op), OFFPATH_OK);
    while (offpath_op_test(op) == OFFPATH_IN_PROGRESS) {
      const offpath_status_t slept = offpath_session_sleep(session, seen, kLongNs);
      REQUIRE(slept == OFFPATH_OK || slept == OFFPATH_IN_PROGRESS);
    }
    REQUIRE(offpath_session_events(session) != seen);
    REQUIRE_STATUS(offpath_session_sleep(session, offpath_session_events(session), 1000), OFFPATH_IN_PROGRESS);
    const offpath_session_counters_t counters = counters_of(session);
    REQUIRE(counters.pulled_bytes == 2000 && counters.served_bytes == 2000);
    REQUIRE(counters.local_bytes == 1000 || counters.local_bytes == 2000);  // own block: ours or the service's
    offpath_op_free(op);
  });
}

}  // namespace
}  // namespace offpath::testing
