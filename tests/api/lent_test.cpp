// SPDX-License-Identifier: BSD-3-Clause
// Memory that is lent to the program: the service uses it in place, and to the program it is as memory of malloc.
#include "job.hpp"
#include "memory.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace offpath::testing {
namespace {

constexpr size_t kBytes = 32 * kPage, kAll = 2 * kBytes;

uint8_t* lend(offpath_session_t* session, uint64_t bytes, uint64_t alignment = 1) {
  void* memory = nullptr;
  REQUIRE_STATUS(offpath_memory_lend(session, bytes, alignment, &memory), OFFPATH_OK);
  REQUIRE(reinterpret_cast<uintptr_t>(memory) % std::max<uint64_t>(alignment, kPage) == 0);
  return static_cast<uint8_t*>(memory);
}

bool is_zero(const uint8_t* at, size_t bytes) {
  return std::all_of(at, at + bytes, [](uint8_t b) { return b == 0; });
}

TEST(Lent, IsUsedInPlaceAndNotCopied) {
  for (const uint32_t nodes : {1, 2}) {
    Job job(2, nodes);
    job.run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
      uint8_t *send = lend(session, kAll + 5, 1 << 16), *recv = lend(session, kAll);
      REQUIRE(is_zero(send, kAll) && is_zero(recv, kAll));
      exchange(p, team, send + 5, recv, kBytes, 1);
      p.barrier();
      const auto before = counters_of(session);
      for (uint32_t step = 2; step < 5; ++step) exchange(p, team, send + 5, recv, kBytes, step);
      p.barrier();
      const auto counters = counters_of(session);
      REQUIRE(counters.copied_bytes == before.copied_bytes && counters.lent_count == 2 &&
              counters.lent_bytes == 2 * kAll + 5);
      REQUIRE(counters.moved_count == 0 && counters.refused_kind_count == 0);
      REQUIRE(eventually([&] { return counters_of(session).in_place_bytes >= 2 * 3 * kBytes; }));
      REQUIRE(offpath_memory_take_back(recv) == 1 && offpath_memory_take_back(recv) == 0);
      REQUIRE(is_zero(lend(session, kAll), kAll));  // what lay there is gone
    });
  }
}

TEST(Lent, OutlivesItsSession) {
  Job job(2);
  job.run([](Process& p) {
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    uint8_t *send = lend(session, kAll), *recv = lend(session, kAll), *third = lend(session, kPage);
    exchange(p, team, send, recv, kBytes, 1);
    offpath_session_t* second = p.attach();
    p.exchange(second);
    offpath_team_t* later = p.make_team(second, 2);
    p.barrier();
    REQUIRE(offpath_memory_take_back(third) == 1);
    offpath_session_detach(session);
    REQUIRE(holds(recv, kBytes, 16) && holds(send, kBytes, 16 + p.rank));
    const pid_t child = fork();
    if (child == 0) {
      memset(recv, 0xEE, kAll);
      _exit(offpath_memory_take_back(recv) == 1 && send[1] == value_at(16 + p.rank, 1) ? 0 : 1);
    }
    REQUIRE(ended_well(child));
    REQUIRE(holds(recv, kBytes, 16));
    exchange(p, later, send, recv, kBytes, 2);  // of another session: by copies
    std::thread([&] { REQUIRE(offpath_memory_take_back(send) == 1); }).join();
    REQUIRE(offpath_memory_take_back(recv) == 1 && offpath_memory_take_back(nullptr) == 0);
    uint8_t there = 0;
    REQUIRE(offpath_memory_take_back(&there) == 0);
    p.barrier();
    offpath_session_detach(second);
  });
}

TEST(Lent, ChildrenAreOnTheirOwn) {
  Job job(2);
  job.run([](Process& p) {
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    uint8_t *send = lend(session, kAll), *recv = lend(session, kAll);
    constexpr size_t kPages = 500;  // shorter than a huge page, which is not lent where private memory alone has such
    uint8_t* sparse = lend(session, kPages * kPage);
    for (size_t i = 0; i < kPages; i += 3) sparse[i * kPage] = 1;
    exchange(p, team, send, recv, kBytes, 1);
    for (uint32_t i = 0; i < 3; ++i) {
      int go[2];
      REQUIRE(pipe(go) == 0);
      const pid_t child = fork();
      if (child == 0) {
        alarm(20);
        char byte;
        bool good = read(go[0], &byte, 1) == 1;  // the parent has written
        good = good && holds(send, kBytes, (i + 1) * 16 + p.rank) && holds(recv, kBytes, (i + 1) * 16);
        for (size_t page = 0; page < kPages; ++page) good &= sparse[page * kPage] == (page % 3 == 0 ? 1 : 0);
        memset(recv, 0xEE, kAll);
        memset(sparse, 0xEE, kPages * kPage);
        const pid_t grandchild = fork();
        if (grandchild == 0) _exit(offpath_memory_take_back(send) == 1 && recv[9] == 0xEE ? 0 : 1);
        int ended = 0;
        good &= waitpid(grandchild, &ended, 0) == grandchild && ended == 0;
        void* more = nullptr;
        good &= offpath_memory_lend(session, kPage, 1, &more) == OFFPATH_ERR_STATE;
        good &= offpath_memory_take_back(send) == 1;
        offpath_session_detach(session);
        _exit(good && recv[77] == 0xEE ? 0 : 1);
      }
      memset(send, 0x11, kAll);
      sparse[kPage] = 7;
      REQUIRE(write(go[1], "x", 1) == 1);
      REQUIRE(ended_well(child));
      close(go[0]), close(go[1]);
      sparse[kPage] = 0;
      REQUIRE(holds(recv, kBytes, (i + 1) * 16) && sparse[3 * kPage] == 1);
      exchange(p, team, send, recv, kBytes, i + 2);
    }
    void* more = nullptr;
    REQUIRE_STATUS(offpath_memory_lend(session, kPage, 1, &more), OFFPATH_ERR_NO_MEMORY);  // enough of forks
    p.barrier();
    offpath_session_detach(session);
  });
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Lent, TheWrongFunctionsOfTheCLibraryDoNoHarm) {
  Job job(2);
  job.run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    uint8_t *send = lend(session, kAll), *recv = lend(session, kAll);
    exchange(p, team, send, recv, kBytes, 1);
    void* volatile wrong = send;  // unknown to the compiler
    auto* grown = static_cast<uint8_t*>(realloc(wrong, 3 * kAll));
    REQUIRE(grown != nullptr && grown != send && holds(grown, kBytes, 16 + p.rank));
    wrong = recv;
    REQUIRE(realloc(wrong, kPage) == recv && holds(recv, kBytes, 16));
    free(wrong);
    REQUIRE(holds(recv, kBytes, 16));
    exchange(p, team, grown, recv, kBytes, 2);
    exchange(p, team, send, recv, kBytes, 3);
    REQUIRE(offpath_memory_take_back(send) == 1 && offpath_memory_take_back(recv) == 1);
    free(grown);
  });
}

// The sanitizer needs mappings of its own.
TEST(Lent, NoRoomForMappingsIsAnError) {
  Job job(2);
  job.run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    void* memory = nullptr;
    uint8_t *send = lend(session, kAll), *recv = lend(session, kAll);
    // Each is a mapping of its own, until there is no room for one more.
    uint8_t* many = map_memory(size_t{140000} * kPage);
    size_t made = 0;
    while (made < 70000 && mprotect(many + 2 * made * kPage, kPage, PROT_READ) == 0) ++made;
    REQUIRE(made < 70000 && memory == nullptr);
    REQUIRE_STATUS(offpath_memory_lend(session, kPage, 1, &memory), OFFPATH_ERR_NO_MEMORY);
    exchange(p, team, send, recv, kBytes, 1);
    REQUIRE(offpath_memory_take_back(send) == 1);
    munmap(many, size_t{140000} * kPage);
    send = lend(session, kAll);
    exchange(p, team, send, recv, kBytes, 2);
  });
}
#endif

// Whatever was done to its pages.
TEST(Lent, MemoryComesZeroedAndWritable) {
  Job job(1);
  job.run_attached([](Process&, offpath_session_t* session) {
    for (int round = 0; round < 3; ++round) {
      uint8_t* lent = lend(session, kAll);
      void* allocated = nullptr;
      REQUIRE_STATUS(offpath_memory_allocate(session, kAll, &allocated), OFFPATH_OK);
      REQUIRE(is_zero(lent, kAll) && is_zero(static_cast<uint8_t*>(allocated), kAll));
      memset(lent, 1, kAll);
      memset(allocated, 2, kAll);
      mlock(lent, kPage);
      mlock(allocated, kAll);
      REQUIRE(mprotect(lent + kPage, kAll - kPage, round == 1 ? PROT_NONE : PROT_READ) == 0);
      REQUIRE(round == 2 || offpath_memory_take_back(lent) == 1);
      offpath_memory_free(session, allocated);
    }
  });
}

TEST(Lent, LimitsAreErrors) {
  Job job(2);
  job.run([](Process& p) {
    setenv("OFFPATH_SHARED_MEMORY_BYTES", "1048576", 1);
    setenv("OFFPATH_MAPPED", "on", 1);  // whatever huge pages the system has
    offpath_session_t* session = nullptr;
    p.join(session);
    void* memory = nullptr;
    REQUIRE_STATUS(offpath_memory_lend(session, 2 << 20, 1, &memory), OFFPATH_ERR_NO_MEMORY);
    REQUIRE_STATUS(offpath_memory_lend(session, UINT64_MAX, 1, &memory), OFFPATH_ERR_NO_MEMORY);
    REQUIRE_STATUS(offpath_memory_lend(session, kPage, 3 * kPage, &memory), OFFPATH_ERR_NO_MEMORY);
    REQUIRE_STATUS(offpath_memory_lend(session, kPage, uint64_t{1} << 40, &memory), OFFPATH_ERR_NO_MEMORY);
    REQUIRE_STATUS(offpath_memory_lend(session, 0, 1, &memory), OFFPATH_ERR_ARGUMENT);
    REQUIRE(memory == nullptr);
    p.barrier();
    offpath_session_detach(session);
    setenv("OFFPATH_MAPPED", "off", 1);
    p.join(session);
    REQUIRE_STATUS(offpath_memory_lend(session, kPage, 1, &memory), OFFPATH_ERR_STATE);
    p.barrier();
    offpath_session_detach(session);
  });
}

}  // namespace
}  // namespace offpath::testing
