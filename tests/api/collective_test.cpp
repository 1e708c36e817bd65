// SPDX-License-Identifier: BSD-3-Clause
// Collectives of all kinds: results, many at once, long descriptions, several workers.
#include "allreduce.hpp"
#include "collective_case.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>

namespace offpath::testing {
namespace {

void run_all(uint32_t processes, uint32_t nodes, const std::vector<uint64_t>& sizes, bool all_algorithms) {
  Job(processes, nodes).run_in_team([&](Process& p, offpath_session_t*, offpath_team_t* team) {
    uint64_t seed = 0;
    for (const uint64_t bytes : sizes) {
      for (const auto kind : kAllKinds) {
        for (int algorithm = 0; algorithm <= (all_algorithms ? OFFPATH_ALGORITHM_MULTICAST : 0); ++algorithm) {
          Case one(p, kind, bytes, ++seed, static_cast<offpath_algorithm_t>(algorithm));
          one.post(team);
          one.finish();
        }
      }
    }
  });
}

TEST(Collective, OfOneMember) { run_all(1, 1, {0, 1, 100, 70000}, true); }
TEST(Collective, EveryAlgorithmOnOneNode) { run_all(3, 1, {0, 5, 3000, 130000}, true); }
TEST(Collective, EveryAlgorithmOnTwoNodes) { run_all(5, 2, {0, 5, 3000, 130000}, true); }
TEST(Collective, EveryAlgorithmOnAsManyNodesAsMembers) { run_all(3, 3, {0, 5, 3000, 130000}, true); }
TEST(Collective, LongOnes) { run_all(4, 2, {600001}, false); }

TEST(Collective, OwnBlocksAreCopiedByAServiceWithCoresOfItsOwn) {
  setenv("OFFPATH_SERVICE_SHARE", "0", 1);
  setenv("OFFPATH_SERVICE_CORES", "0", 1);
  run_all(3, 1, {5, 70000}, false);
  unsetenv("OFFPATH_SERVICE_SHARE");
  unsetenv("OFFPATH_SERVICE_CORES");
}

// Teams take turns in an order that each member has for itself; so does the waiting.
void run_mixed(uint32_t processes, uint32_t nodes) {
  const uint64_t seed = std::random_device()();
  fprintf(stderr, "seed %llu\n", static_cast<unsigned long long>(seed));
  Job(processes, nodes).run_attached([&](Process& p, offpath_session_t* session) {
    constexpr size_t kTeams = 4, kEach = 40;
    std::vector<offpath_team_t*> teams;
    std::vector<std::vector<Case>> cases(kTeams);
    for (size_t t = 0; t < kTeams; ++t) {
      teams.push_back(p.make_team(session, static_cast<uint8_t>(t)));
      std::mt19937_64 random(seed + t);
      for (size_t k = 0; k < kEach; ++k) {
        const auto kind = kAllKinds[random() % std::size(kAllKinds)];
        const uint64_t bytes = random() % 8 == 0 ? random() % 200000 : random() % 2000;
        cases[t].emplace_back(p, kind, bytes, random(), static_cast<offpath_algorithm_t>(random() % 10));
      }
    }
    std::mt19937_64 own(seed * 31 + p.rank);
    std::vector<size_t> next(kTeams, 0);
    std::vector<Case*> posted;
    while (posted.size() < kTeams * kEach) {
      const size_t t = own() % kTeams;
      if (next[t] == kEach) continue;
      posted.push_back(&cases[t][next[t]++]);
      posted.back()->post(teams[t]);
    }
    std::shuffle(posted.begin(), posted.end(), own);
    for (Case* one : posted) one->finish();
  });
}

TEST(MixedCollectives, OnOneNode) { run_mixed(4, 1); }
TEST(MixedCollectives, OnTwoNodes) { run_mixed(5, 2); }

void run_with_workers(const char* workers) {
  setenv("OFFPATH_SERVICE_WORKERS", workers, 1);
  run_mixed(5, 1);
  run_mixed(6, 2);
  run_all(4, 2, {5, 130000}, false);
  unsetenv("OFFPATH_SERVICE_WORKERS");
}

TEST(MixedCollectives, WithTwoWorkers) { run_with_workers("2"); }
TEST(MixedCollectives, WithThreeWorkers) { run_with_workers("3"); }

// An exchange of a few bytes that lie in ranges of their own, the first ones of very many.
struct Scattered {
  static constexpr uint32_t kBytes = 300;
  explicit Scattered(uint32_t count) : ranges(count), send(2 * kBytes), recv(2 * kBytes) {
    for (uint32_t i = 0; i < count; ++i) ranges[i] = {2 * i, 1};
  }
  offpath_status_t post(offpath_team_t* team, uint32_t peer) {
    const auto count = static_cast<uint32_t>(ranges.size());
    const offpath_layout_t layout{count, 2 * int64_t{count}, ranges.data(), count};
    const offpath_block_t out{peer, 0, send.data(), kBytes, 1}, in{peer, 0, recv.data(), kBytes, 1};
    offpath_collective_t c{};
    c.struct_bytes = sizeof(c);
    c.kind = OFFPATH_EXCHANGE;
    c.send = &out, c.send_count = 1;
    c.recv = &in, c.recv_count = 1;
    c.layouts = &layout, c.layouts_count = 1;
    return offpath_collective(team, &c, &op);
  }
  std::vector<offpath_range_t> ranges;
  std::vector<uint8_t> send, recv;
  offpath_op_t* op = nullptr;
};

TEST(LongDescriptions, QueueUntilThereIsRoom) {
  Job(2, 2).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    std::vector<Scattered> all(150, Scattered(40000));  // 640 kB each: some sixty fit
    for (size_t k = 0; k < all.size(); ++k) {
      for (uint32_t i = 0; i < Scattered::kBytes; ++i) all[k].send[2 * i] = static_cast<uint8_t>(i + k * 5 + p.rank);
      REQUIRE_STATUS(all[k].post(team, 1 - p.rank), OFFPATH_OK);
    }
    for (size_t k = all.size(); k-- > 0;) {
      p.wait_ok(all[k].op);
      for (uint32_t i = 0; i < Scattered::kBytes; ++i) {
        REQUIRE(all[k].recv[2 * i] == static_cast<uint8_t>(i + k * 5 + 1 - p.rank) && all[k].recv[2 * i + 1] == 0);
      }
      offpath_op_free(all[k].op);
    }
    // What was cut into small pieces is there as a whole again.
    Scattered large(1 << 20);
    REQUIRE_STATUS(large.post(team, 1 - p.rank), OFFPATH_OK);
    p.finish_ok(large.op);
  });
}

TEST(LongDescriptions, ThatNeverFitAreNoMemory) {
  Job(1).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    for (const uint32_t ranges : {2100000U, 3000000U, 5000000U}) {
      REQUIRE_STATUS(Scattered(ranges).post(team, 0), OFFPATH_ERR_NO_MEMORY);
    }
    Case after(p, OFFPATH_ALLREDUCE, 100, 1);
    after.post(team);
    after.finish();
  });
}

TEST(Collective, WrongArgumentsAreRefused) {
  Job(1).run_in_team([](Process&, offpath_session_t*, offpath_team_t* team) {
    offpath_collective_t c{};
    offpath_op_t* op = nullptr;
    c.struct_bytes = sizeof(c);
    c.kind = OFFPATH_BARRIER;
    REQUIRE_STATUS(offpath_collective(nullptr, &c, &op), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_collective(team, nullptr, &op), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_collective(team, &c, nullptr), OFFPATH_ERR_ARGUMENT);
    c.send_count = 1;  // the rest: tests/unit/client
    REQUIRE_STATUS(offpath_collective(team, &c, &op), OFFPATH_ERR_ARGUMENT);
    REQUIRE(op == nullptr && offpath_team_started(team) == 0);
  });
}

// The service knows which operators go with which element types. The team goes on.
TEST(Collective, OperatorsThatAreNotDefinedAreRefused) {
  Job(2).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    for (int round = 0; round < 3; ++round) {
      double value = 1;
      const offpath_block_t block{0, 0, &value, sizeof(value), 0};
      offpath_collective_t c = allreduce_of(block, block);
      c.op = OFFPATH_OP_BXOR;
      offpath_op_t* op = nullptr;
      REQUIRE_STATUS(offpath_collective(team, &c, &op), OFFPATH_ERR_ARGUMENT);
      REQUIRE(op == nullptr && value == 1);
      Case after(p, OFFPATH_ALLREDUCE, 100, 1);
      after.post(team);
      after.finish();
    }
  });
}

TEST(Collective, UnfinishedOnesSayWhatTheyWaitFor) {
  Job(3, 3).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    Case one(p, OFFPATH_ALLREDUCE, 40, 1);
    char text[200] = "";
    if (p.rank == 2) p.barrier();
    one.post(team);
    if (p.rank != 2) {
      REQUIRE(eventually([&] {
        offpath_op_describe(one.operation(), text, sizeof(text));
        return strstr(text, "waits for rank") != nullptr;
      }));
      REQUIRE(strstr(text, "allreduce #0: ") == text && strstr(text, " to give left; waits for rank ") != nullptr);
      p.barrier();
    }
    one.finish();
  });
}

}  // namespace
}  // namespace offpath::testing
