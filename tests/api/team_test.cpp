// SPDX-License-Identifier: BSD-3-Clause
// Teams: what may make one, what it says about itself, and that it gives its memory back.
#include "job.hpp"

#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace offpath::testing {
namespace {

TEST(Team, WrongArgumentsAreRefused) {
  Job(1).run_attached([](Process& p, offpath_session_t* session) {
    offpath_team_t* team = nullptr;
    const auto refuse = [&](auto change) {
      offpath_team_params_t params = p.team_params(1);
      change(params);
      offpath_error_t error{};
      REQUIRE_STATUS(offpath_team_create(session, &params, &team, &error), OFFPATH_ERR_ARGUMENT);
      REQUIRE(team == nullptr && error.status == OFFPATH_ERR_ARGUMENT && error.text[0] != '\0');
    };
    refuse([](auto& t) { t.struct_bytes = 0; });
    refuse([](auto& t) { t.struct_bytes += 8; });
    refuse([](auto& t) { t.size = 0; });
    refuse([](auto& t) { t.rank = 1; });
    refuse([](auto& t) { t.rank = UINT32_MAX; });
    refuse([](auto& t) { t.addresses = nullptr; });
    refuse([](auto& t) { t.address_stride_bytes = 0; });
    refuse([](auto& t) { t.address_stride_bytes = 23; });
    refuse([](auto& t) { t.address_stride_bytes = OFFPATH_ADDRESS_MAX_BYTES + 1; });
    const offpath_team_params_t good = p.team_params(1);
    REQUIRE_STATUS(offpath_team_create(nullptr, &good, &team, nullptr), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_team_create(session, nullptr, &team, nullptr), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_team_create(session, &good, nullptr, nullptr), OFFPATH_ERR_ARGUMENT);
    memset(p.shared.address[0] + 20, 0xFF, 4);  // the length inside the address
    refuse([](auto&) {});
    offpath_team_destroy(nullptr);
  });
}

// Whoever carries the token from node to node, a secret that was given counts as well.
TEST(Team, IsOfNodesThatKnowTheSameSecret) {
  for (const char* second : {"a secret of the job", "another secret of it", ""}) {
    Job(3, 2).run([second](Process& p) {
      setenv("OFFPATH_JOB_SECRET", p.rank % 2 == 0 ? "a secret of the job" : second, 1);
      offpath_session_t* session = p.attach();
      p.exchange(session);
      const offpath_team_params_t params = p.team_params(1);
      offpath_team_t* team = nullptr;
      offpath_error_t error{};
      const offpath_status_t status = offpath_team_create(session, &params, &team, &error);
      if (strcmp(second, "a secret of the job") == 0) {
        REQUIRE_STATUS(status, OFFPATH_OK);
        const std::vector<uint8_t> sent(3, static_cast<uint8_t>(p.rank + 1));
        std::vector<uint8_t> received(3);
        p.complete([&](auto op) { return offpath_alltoall(team, sent.data(), received.data(), 1, op); });
        REQUIRE(received == (std::vector<uint8_t>{1, 2, 3}));
        p.barrier();
      } else {
        REQUIRE_STATUS(status, OFFPATH_ERR_PERMISSION);
        REQUIRE(strstr(error.text, "OFFPATH_JOB_SECRET") != nullptr);
      }
      offpath_session_detach(session);
    });
  }
}

TEST(Team, ASecretThatCouldBeGuessedIsRefused) {
  Job(1).run([](Process& p) {
    setenv("OFFPATH_JOB_SECRET", "fifteen letters", 1);
    const offpath_attach_params_t params = p.params();
    offpath_session_t* session = nullptr;
    offpath_error_t error{};
    REQUIRE(offpath_session_attach(&params, &session, &error) != OFFPATH_OK);
    REQUIRE(strstr(error.text, "OFFPATH_JOB_SECRET has 15 characters") != nullptr);
  });
}

// Each address once, in any order, and one that nobody has.
TEST(Team, IsMadeOfNumberedAddresses) {
  Job(4, 2).run_attached([](Process& p, offpath_session_t* session) {
    offpath_team_params_t params = p.team_params(1);
    const auto* first = static_cast<const uint8_t*>(params.addresses);
    std::vector<std::vector<uint8_t>> found;
    std::vector<uint32_t> numbers;
    for (uint32_t rank = 0; rank < p.size; ++rank) {
      const uint8_t* const address = first + size_t{rank} * params.address_stride_bytes;
      found.emplace_back(address, address + params.address_stride_bytes);
      const auto same = std::find(found.begin(), found.end() - 1, found.back());
      numbers.push_back(static_cast<uint32_t>(same - found.begin()));
      if (same != found.end() - 1) found.pop_back();
    }
    const auto count = static_cast<uint32_t>(found.size());
    std::vector<uint8_t> table(params.address_stride_bytes, 0xFF);
    for (auto each = found.rbegin(); each != found.rend(); ++each)
      table.insert(table.end(), each->begin(), each->end());
    for (uint32_t& number : numbers) number = count - number;
    offpath_directory_t directory{};
    directory.struct_bytes = sizeof(directory);
    directory.count = count + 1;
    directory.stride_bytes = params.address_stride_bytes;
    directory.addresses = table.data();
    directory.number_of = numbers.data();
    params.addresses = nullptr;
    offpath_team_t* team = nullptr;
    const auto create = [&] { return offpath_team_create_numbered(session, &params, &directory, &team, nullptr); };
    REQUIRE_STATUS(create(), OFFPATH_OK);
    REQUIRE(offpath_team_nodes(team) == 2);
    uint8_t mine[4] = {}, theirs[4] = {};
    for (uint32_t to = 0; to < p.size; ++to) mine[to] = static_cast<uint8_t>(10 * p.rank + to);
    p.complete([&](auto op) { return offpath_alltoall(team, mine, theirs, 1, op); });
    for (uint32_t from = 0; from < p.size; ++from) REQUIRE(theirs[from] == 10 * from + p.rank);
    offpath_team_destroy(team);
    directory.struct_bytes = 0;
    REQUIRE_STATUS(create(), OFFPATH_ERR_ARGUMENT);
    directory.struct_bytes = sizeof(directory);
    REQUIRE_STATUS(offpath_team_create_numbered(session, &params, nullptr, &team, nullptr), OFFPATH_ERR_ARGUMENT);
    numbers[1] = directory.count;
    REQUIRE_STATUS(create(), OFFPATH_ERR_ARGUMENT);
  });
}

TEST(Team, KnowsOnHowManyNodesItLives) {
  for (const uint32_t nodes : {1U, 2U, 3U}) {
    Job(4, nodes).run_in_team([nodes](Process&, offpath_session_t*, offpath_team_t* team) {
      REQUIRE(offpath_team_nodes(team) == nodes);
      REQUIRE(offpath_team_broken(team) == 0);
      REQUIRE(offpath_team_started(team) == 0);
      uint8_t lost[4] = {9, 9, 9, 9};
      offpath_team_lost(team, lost);
      for (const uint8_t one : lost) REQUIRE(one == 0);
      offpath_team_destroy(team);
    });
  }
}

TEST(Team, CountsWhatWasBegun) {
  Job(2).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    uint8_t send[20] = {}, recv[20];
    for (uint64_t i = 0; i < 5; ++i) {
      p.complete([&](auto op) { return offpath_alltoall(team, send, recv, 10, op); });
      REQUIRE(offpath_team_started(team) == i + 1);
    }
  });
}

// "This member has no part in the next `count` operations: their numbers pass."
TEST(Team, MembersSkipWhatTheyHaveNoPartIn) {
  for (const uint32_t nodes : {1U, 3U}) {
    Job(3, nodes).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
      constexpr uint64_t kRounds = 40;
      // Operation k is between members k % 3 and the next; every tenth is everybody's, and tens of others pass unused.
      for (uint64_t k = 0; k < kRounds; ++k) {
        const uint32_t first = static_cast<uint32_t>(k % 3), second = (first + 1) % 3;
        const bool together = k % 10 == 9;
        if (!together && p.rank != first && p.rank != second) {
          offpath_team_skip(team, 1);
          continue;
        }
        uint64_t send[3], recv[3] = {7, 7, 7}, bytes[3];
        const int64_t displs[3] = {0, 8, 16};
        for (uint32_t peer = 0; peer < 3; ++peer) {
          send[peer] = 1000 * k + 10 * p.rank + peer;
          const bool meets = peer != p.rank && (together || peer == first || peer == second);
          bytes[peer] = meets ? 8 : 0;
        }
        p.complete([&](auto op) { return offpath_alltoallv(team, send, bytes, displs, recv, bytes, displs, op); });
        REQUIRE(offpath_team_started(team) == k + 1 || k > 9);
        for (uint32_t peer = 0; peer < 3; ++peer)
          REQUIRE(recv[peer] == (bytes[peer] == 0 ? 7 : 1000 * k + 10 * peer + p.rank));
        if (together) offpath_team_skip(team, 10);
      }
    });
  }
}

TEST(Team, OfOneMember) {
  Job(1).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    uint8_t send[100], recv[100] = {};
    memset(send, 7, sizeof(send));
    p.complete([&](auto op) { return offpath_alltoall(team, send, recv, 100, op); });
    REQUIRE(memcmp(send, recv, 100) == 0);
  });
}

// All members are served where this process is, or, where their number says so, where the second one is.
offpath_status_t create_of_many(const Process& p, offpath_session_t* session, uint8_t id,
                                const std::vector<uint32_t>& number_of, offpath_team_t** team) {
  offpath_team_params_t params = p.team_params(id);
  params.size = static_cast<uint32_t>(number_of.size());
  offpath_directory_t directory{};
  directory.struct_bytes = sizeof(directory);
  directory.count = 2;
  directory.stride_bytes = params.address_stride_bytes;
  directory.addresses = params.addresses;
  directory.number_of = number_of.data();
  return offpath_team_create_numbered(session, &params, &directory, team, nullptr);
}

// An exchange of the one member with itself.
void use_alone(const Process& p, offpath_team_t* team) {
  const uint8_t send = 1;
  uint8_t recv = 0;
  p.complete([&](auto op) { return offpath_alltoall(team, &send, &recv, 1, op); });
  REQUIRE(recv == send);
}

// Of this process.
offpath_team_params_t alone(const Process& p, uint8_t id) {
  offpath_team_params_t params = p.team_params(id);
  params.rank = 0;
  params.size = 1;
  params.addresses = p.shared.address[p.rank];
  return params;
}

// Ranks that have given the service nothing keep it from a shared core unless they know that it is at work.
TEST(Team, AllOfANodeHearThatItsServiceIsUsed) {
  Job(4).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t*) {
    REQUIRE(offpath_session_used(session) == 0);
    p.barrier();
    if (p.rank == 1) {
      const offpath_team_params_t params = alone(p, 7);
      offpath_team_t* own = nullptr;
      REQUIRE_STATUS(offpath_team_create(session, &params, &own, nullptr), OFFPATH_OK);
      uint8_t send[100] = {}, recv[100];
      p.complete([&](auto op) { return offpath_alltoall(own, send, recv, 100, op); });
      offpath_team_destroy(own);
    }
    REQUIRE(eventually([&] { return offpath_session_used(session) == 1; }));
    offpath_session_t* const late = p.attach();
    REQUIRE(eventually([&] { return offpath_session_used(late) == 1; }));
    offpath_session_detach(late);
  });
}

TEST(Team, OfManyMembersTakesLittle) {
  Job(1).run_attached([](Process& p, offpath_session_t* session) {
    const std::vector<uint32_t> number_of(100'000);
    for (uint8_t id = 0; id < 50; ++id) {
      offpath_team_t* team = nullptr;
      REQUIRE_STATUS(create_of_many(p, session, id, number_of, &team), OFFPATH_OK);
    }
  });
}

TEST(Team, TooManyMembersIsNoMemory) {
  Job(1).run_attached([](Process& p, offpath_session_t* session) {
    const std::vector<uint32_t> number_of(20'000'000);
    offpath_team_t* team = nullptr;
    REQUIRE_STATUS(create_of_many(p, session, 1, number_of, &team), OFFPATH_ERR_NO_MEMORY);
    offpath_team_destroy(p.make_team(session));  // nothing was damaged
  });
}

TEST(Team, SeveralAtOnceDoNotMix) {
  Job(3, 2).run_attached([](Process& p, offpath_session_t* session) {
    constexpr size_t kTeams = 20;
    offpath_team_t* teams[kTeams];
    offpath_op_t* ops[kTeams];
    std::vector<uint8_t> send(kTeams * 3), recv(kTeams * 3);
    for (size_t t = 0; t < kTeams; ++t) teams[t] = p.make_team(session, static_cast<uint8_t>(t));
    for (size_t k = 0; k < kTeams; ++k) {
      const size_t t = (k + p.rank * 7) % kTeams;  // everybody in an order of its own
      memset(&send[t * 3], static_cast<int>(t * 10 + p.rank), 3);
      REQUIRE_STATUS(offpath_alltoall(teams[t], &send[t * 3], &recv[t * 3], 1, &ops[t]), OFFPATH_OK);
    }
    for (size_t t = 0; t < kTeams; ++t) {
      p.finish_ok(ops[t]);
      for (size_t i = 0; i < 3; ++i) REQUIRE(recv[t * 3 + i] == t * 10 + i);
      offpath_team_destroy(teams[t]);
    }
  });
}

TEST(Team, TheSameIdTwiceInOneProcessIsAnErrorOfTheOperation) {
  Job(1).run([](Process& p) {
    offpath_session_t* session = nullptr;
    offpath_team_t* first = p.join(session);
    offpath_team_t* second = p.make_team(session);
    uint8_t send = 1, recv = 0;
    offpath_op_t* op = nullptr;
    REQUIRE_STATUS(offpath_alltoall(second, &send, &recv, 1, &op), OFFPATH_OK);
    REQUIRE_STATUS(finish(op), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_alltoall(first, &send, &recv, 1, &op), OFFPATH_OK);
    p.finish_ok(op);
    offpath_session_detach(session);
  });
}

TEST(Team, DestroyedOnesGiveTheirMemoryBack) {
  Job(1).run_attached([](Process& p, offpath_session_t* session) {
    const std::vector<uint32_t> number_of(200'000);
    for (uint8_t i = 0; i < 200; ++i) {  // over 1 MiB each, the segment has 64
      offpath_team_t* team = nullptr;
      offpath_status_t status = OFFPATH_OK;
      eventually([&] { return (status = create_of_many(p, session, i, number_of, &team)) != OFFPATH_ERR_NO_MEMORY; });
      REQUIRE_STATUS(status, OFFPATH_OK);
      offpath_team_destroy(team);
    }
  });
}

#ifndef __SANITIZE_ADDRESS__  // which keeps what was freed
// A program that makes one after the other for days.
TEST(Team, ManySmallOnesLeaveLittleInTheService) {
  Job(1).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t*) {
    const auto resident_kib = [session] {
      std::ifstream status("/proc/" + std::to_string(service_of(session)) + "/status");
      std::string word;
      while (status >> word && word != "RssAnon:") {
      }
      uint64_t kib = 0;
      status >> kib;
      return kib;
    };
    const auto make = [&](int count) {
      for (int i = 0; i < count; ++i) {
        offpath_team_params_t params = p.team_params(2);
        memcpy(params.id + 1, &i, sizeof(i));
        offpath_team_t* team = nullptr;
        REQUIRE(eventually([&] { return offpath_team_create(session, &params, &team, nullptr) == OFFPATH_OK; }));
        use_alone(p, team);
        offpath_team_destroy(team);
      }
    };
    make(6000);  // it remembers so many, and no more
    const uint64_t before = resident_kib();
    make(12000);
    REQUIRE(before > 0 && resident_kib() < before + 4096);
  });
}
#endif

// The service does not come to take what was destroyed, so the memory runs out; when it does, there is room again.
TEST(Team, MemoryThatBecameFreeIsFound) {
  Job(1).run_attached([](Process& p, offpath_session_t* session) {
    const pid_t service = service_of(session);
    const std::vector<uint32_t> number_of(200'000);
    uint8_t id = 0;
    const auto create_and_destroy = [&] {
      offpath_team_t* team = nullptr;
      const offpath_status_t status = create_of_many(p, session, ++id, number_of, &team);
      offpath_team_destroy(team);
      return status;
    };
    stop_process(service);
    offpath_status_t status = OFFPATH_OK;
    for (int i = 0; i < 200 && status == OFFPATH_OK; ++i) status = create_and_destroy();
    REQUIRE(kill(service, SIGCONT) == 0);
    REQUIRE_STATUS(status, OFFPATH_ERR_NO_MEMORY);
    REQUIRE(eventually([&] { return create_and_destroy() == OFFPATH_OK; }));
  });
}

// The service always has something of his to do.
TEST(Team, WhoMakesOneAfterTheOtherKeepsNobodyFromHisTurn) {
  Job(2).run([](Process& p) {
    offpath_session_t* session = p.attach();
    p.exchange(session);
    const std::vector<uint32_t> number_of(20'000);
    const auto makes = [&](uint8_t id) {
      offpath_team_t* team = nullptr;
      create_of_many(p, session, id, number_of, &team);  // or there is no memory for it now
      offpath_team_destroy(team);
    };
    if (p.rank == 0) {
      for (uint8_t id = 0; p.shared.value[1] == 0; ++id) {
        makes(id);
        if (id == 100) p.shared.value[0] = 1;
      }
    } else {
      REQUIRE(eventually([&] { return p.shared.value[0] == 1; }));
      const offpath_team_params_t params = alone(p, 7);
      offpath_team_t* team = nullptr;
      REQUIRE_STATUS(offpath_team_create(session, &params, &team, nullptr), OFFPATH_OK);
      for (int i = 0; i < 3; ++i) use_alone(p, team);
      p.shared.value[1] = 1;
      offpath_team_destroy(team);
    }
    offpath_session_detach(session);
  });
}

// "Operations in progress go on; the memory goes with the last of them."
TEST(Team, DestroyedWithAnOperationInProgressGivesItsMemoryBack) {
  Job(2).run_attached([](Process& p, offpath_session_t* session) {
    constexpr uint32_t kSize = 100'000;
    std::vector<uint32_t> number_of(kSize);  // members 2.. never do anything
    number_of[1] = 1;
    std::vector<uint64_t> counts(kSize, 0);
    const std::vector<int64_t> displs(kSize, 0);
    counts[1 - p.rank] = 8;
    for (uint8_t i = 0; i < 100; ++i) {
      offpath_team_t* team = nullptr;
      REQUIRE(eventually([&] { return create_of_many(p, session, i, number_of, &team) == OFFPATH_OK; }));
      uint64_t send = 100u + i, recv = 0;
      offpath_op_t* op = nullptr;
      if (p.rank == 1) p.barrier();  // only after the other one has destroyed its team
      REQUIRE_STATUS(
          offpath_alltoallv(team, &send, counts.data(), displs.data(), &recv, counts.data(), displs.data(), &op),
          OFFPATH_OK);
      if (p.rank == 0) REQUIRE(eventually([&] { return offpath_team_started(team) == 1; }));
      const uint32_t seen = offpath_session_events(session);
      offpath_team_destroy(team);
      if (p.rank == 0) {
        REQUIRE(eventually([&] { return offpath_session_events(session) != seen; }));
        offpath_team_destroy(p.make_team(session, 255));  // finds the destruction done, the operation not
        p.barrier();
      }
      p.finish_ok(op);
      REQUIRE(recv == 100u + i);
    }
  });
}

// An address nobody can be reached at: the operation fails, the service lives.
TEST(Team, GarbageAddressesDoNotHurtTheService) {
  Job(1).run_attached([](Process& p, offpath_session_t* session) {
    offpath_team_t* good = p.make_team(session, 1);
    for (uint8_t garbage = 0; garbage < 5; ++garbage) {
      memcpy(p.shared.address[1], p.shared.address[0], OFFPATH_ADDRESS_MAX_BYTES);
      p.shared.address[1][0] ^= 0xFF;  // another service
      uint32_t length = 0;
      memcpy(&length, &p.shared.address[1][20], sizeof(length));
      if (garbage == 1) length = 0;
      if (garbage == 2) memset(&p.shared.address[1][24], 0xFF, length);
      if (garbage == 3) memset(&p.shared.address[1][24 + length / 2], 0x5A, length - length / 2);
      if (garbage == 4) memcpy(&p.shared.address[1][24], "ucx:", 4);  // of a fabric that the service does not have
      if (garbage == 0) length = length / 2;
      memcpy(&p.shared.address[1][20], &length, sizeof(length));
      offpath_team_params_t params = p.team_params(static_cast<uint8_t>(10 + garbage));
      params.size = 2;
      offpath_team_t* team = nullptr;
      const offpath_status_t made = offpath_team_create(session, &params, &team, nullptr);
      if (made != OFFPATH_OK) continue;  // refusing it is as good
      uint8_t send[2] = {1, 2}, recv[2];
      offpath_op_t* op = nullptr;
      if (offpath_alltoall(team, send, recv, 1, &op) == OFFPATH_OK) {
        const offpath_status_t status = offpath_op_wait(op, kLongNs / 3);
        fprintf(stderr, "garbage %d: %s\n", garbage, name_of(status).c_str());
        REQUIRE(status < 0 && status != OFFPATH_ERR_SERVICE_LOST);
        offpath_op_free(op);
      }
      REQUIRE(offpath_session_alive(session) == 1);
    }
    use_alone(p, good);
  });
}

}  // namespace
}  // namespace offpath::testing
