// SPDX-License-Identifier: BSD-3-Clause
// Memory that is moved into the session where it lies: whatever a program does with it, it behaves as its own, and what
// is sent and received is right.
#include "allreduce.hpp"
#include "moving_job.hpp"
#include "window.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace offpath::testing {
namespace {

TEST(Moved, IsUsedInPlaceAndNotCopied) {
  MovingJob(1, "2").run([](Process& p) {
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    constexpr size_t kBytes = 64 * kPage;
    uint8_t *send = map_memory(2 * kBytes), *recv = map_memory(2 * kBytes);
    exchange(p, team, send, recv, kBytes, 1);
    REQUIRE(moved(session) == 0);
    exchange(p, team, send, recv, kBytes, 2);
    REQUIRE(moved(session) == 2);
    p.barrier();
    const auto before = counters_of(session);
    p.barrier();
    exchange(p, team, send, recv, kBytes, 3);
    p.barrier();
    const auto after = counters_of(session);
    REQUIRE(after.copied_bytes == before.copied_bytes);
    REQUIRE(eventually([&] {  // sent and received
      return counters_of(session).in_place_bytes - before.in_place_bytes >= 2 * kBytes;
    }));
    REQUIRE(after.moved_bytes == 4 * kBytes);
    p.barrier();
    offpath_session_detach(session);
    REQUIRE(holds(recv, kBytes, 3 * 16));  // it is the program's for good
    munmap(send, 2 * kBytes);
    munmap(recv, 2 * kBytes);
  });
}

// As malloc places them: the first and the last page belong to others, too.
TEST(Moved, OnlyTheEdgesOfABlockAreCopied) {
  for (const uint32_t nodes : {1, 2}) {
    MovingJob(nodes).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
      constexpr size_t kBytes = 300 * kPage + 100;
      uint8_t *send = map_memory(2 * kBytes + 2 * kPage) + 16, *recv = map_memory(2 * kBytes + 2 * kPage) + 48;
      exchange(p, team, send, recv, kBytes, 1);
      exchange(p, team, send, recv, kBytes, 2);
      const auto before = counters_of(session);
      p.barrier();
      exchange(p, team, send, recv, kBytes, 3);
      p.barrier();
      const auto after = counters_of(session);
      REQUIRE(after.copied_bytes - before.copied_bytes <= 4 * kPage);
      REQUIRE(eventually(
          [&] { return counters_of(session).in_place_bytes - before.in_place_bytes >= 2 * (kBytes - kPage); }));
      // A sum, whose elements do not end at pages.
      const offpath_block_t from = block(send, kBytes / 8 * 8), to = block(recv, kBytes / 8 * 8);
      offpath_collective_t sum = allreduce_of(from, to);
      sum.element = OFFPATH_ELEMENT_U64;
      for (size_t i = 0; i < kBytes / 8; ++i) reinterpret_cast<uint64_t*>(send)[i] = i * (p.rank + 1);
      p.complete([&](auto op) { return offpath_collective(team, &sum, op); });
      for (size_t i = 0; i < kBytes / 8; ++i) REQUIRE(reinterpret_cast<uint64_t*>(recv)[i] == 3 * i);
    });
  }
}

TEST(Moved, IsOffUnlessAskedFor) {
  Job job(2);
  job.run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    uint8_t *send = map_memory(64 * kPage), *recv = map_memory(64 * kPage);
    for (uint32_t step = 1; step < 20; ++step) exchange(p, team, send, recv, 32 * kPage, step);
    REQUIRE(moved(session) == 0);
  });
}

TEST(Moved, SpecialMemoryIsLeftAlone) {
  MovingJob().run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    constexpr size_t kBytes = 32 * kPage, kAll = 2 * kBytes;
    const std::string name = p.folder + "-file" + std::to_string(p.rank);
    const int file = open(name.c_str(), O_RDWR | O_CREAT, 0600);
    REQUIRE(file >= 0 && ftruncate(file, kAll) == 0 && unlink(name.c_str()) == 0);
    static uint8_t variables[kAll + kPage];
    std::vector<uint8_t*> special = {map_memory(kAll, MAP_SHARED | MAP_ANONYMOUS), map_memory(kAll, MAP_PRIVATE, file),
                                     map_memory(kAll, MAP_SHARED, file), variables};
    uint8_t* huge = map_memory(kAll);
    if (madvise(huge, kAll, MADV_HUGEPAGE) == 0) special.push_back(huge);
    uint8_t* locked = map_memory(kAll);
    if (mlock(locked, kAll) == 0) special.push_back(locked);
    uint8_t* not_inherited = map_memory(kAll);
    REQUIRE(madvise(not_inherited, kAll, MADV_DONTFORK) == 0);
    special.push_back(not_inherited);
    uint32_t step = 0;
    for (uint8_t* memory : special) {
      for (int i = 0; i < 3; ++i)
        exchange(p, team, memory, memory == special[0] ? special[1] : special[0], kBytes, ++step);
    }
    uint8_t* read_only = map_memory(kAll);
    uint8_t* recv = special[0];
    fill(read_only, kBytes, 16 + p.rank), fill(read_only + kBytes, kBytes, 16 + p.rank);
    REQUIRE(mprotect(read_only, kAll, PROT_READ) == 0);
    p.complete([&](auto op) { return offpath_alltoall(team, read_only, recv, kBytes, op); });
    REQUIRE(holds(recv, kBytes, 16) && holds(recv + kBytes, kBytes, 17));
    REQUIRE(moved(session) == 0);
    REQUIRE(counters_of(session).refused_kind_count >= special.size());
  });
}

constexpr size_t kLarge = 2 << 20;

// Two large pages; null: there are none to be had.
uint8_t* map_large(int flags) {
  void* memory = mmap(nullptr, 3 * kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  return reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(memory) + kLarge - 1) / kLarge * kLarge);
}

// What the kernel has given large pages would lose them.
void expect_large_pages_stay(int flags, bool advised) {
  MovingJob().run_in_team([=](Process& p, offpath_session_t* session, offpath_team_t* team) {
    uint8_t *large = map_large(flags), *recv = map_memory(2 * kLarge);
    const bool there = large != nullptr && (!advised || madvise(large, 2 * kLarge, MADV_HUGEPAGE) == 0);
    if (!there) large = recv;  // the other process has taken the last one
    for (uint32_t step = 1; step < 4; ++step)
      exchange(p, team, large, there ? recv : map_memory(2 * kLarge), kLarge, step);
    REQUIRE(!there || (moved(session) == 1 && counters_of(session).refused_kind_count == 1));
  });
}

TEST(Moved, TransparentLargePagesStay) {
  uint8_t* large = map_large(0);
  if (large == nullptr || madvise(large, 2 * kLarge, MADV_HUGEPAGE) != 0) GTEST_SKIP() << "no transparent large pages";
  munmap(large, 2 * kLarge);
  expect_large_pages_stay(0, true);
}

TEST(Moved, ExplicitLargePagesStay) {
  uint8_t* large = map_large(MAP_HUGETLB | MAP_POPULATE);
  if (large == nullptr) GTEST_SKIP() << "no explicit large pages (vm.nr_hugepages)";
  munmap(large, 2 * kLarge);
  expect_large_pages_stay(MAP_HUGETLB | MAP_POPULATE, false);
}

TEST(Moved, AWindowIsNotMovedWhileItIsOpen) {
  MovingJob().run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    constexpr size_t kBytes = 32 * kPage;
    uint8_t *memory = map_memory(2 * kBytes), *recv = map_memory(2 * kBytes);
    offpath_window_t* window = open_window(team, 1, memory, 2 * kBytes);
    p.barrier();
    exchange(p, team, memory, recv, kBytes, 1);
    REQUIRE(moved(session) == 1 && counters_of(session).refused_window_count == 1);
    p.barrier();
    offpath_window_destroy(window);
    exchange(p, team, memory, recv, kBytes, 2);
    REQUIRE(moved(session) == 2);
    p.barrier();
    // From here on as what it is: others write and read it in place.
    window = open_window(team, 2, memory, 2 * kBytes);
    uint8_t* origin = map_memory(kBytes);
    fill(origin, kBytes, 50 + p.rank);
    const uint32_t other = 1 - p.rank;
    const auto before = counters_of(session);
    p.barrier();
    REQUIRE_STATUS(run(window, put_of(other, p.rank * kBytes, origin, kBytes)), OFFPATH_OK);
    p.barrier();
    REQUIRE(holds(memory + other * kBytes, kBytes, 50 + other));
    fill(memory + p.rank * kBytes, kBytes, 60 + p.rank);
    p.barrier();
    REQUIRE_STATUS(run(window, get_of(other, other * kBytes, origin, kBytes)), OFFPATH_OK);
    REQUIRE(holds(origin, kBytes, 60 + other));
    p.barrier();
    REQUIRE(counters_of(session).copied_bytes == before.copied_bytes && moved(session) == 3);
    REQUIRE(eventually([&] { return counters_of(session).in_place_bytes - before.in_place_bytes >= 4 * kBytes; }));
    p.barrier();
    offpath_window_destroy(window);
    // Others may write what is kept at any time, by ways that the session does not know.
    uint8_t* kept = map_memory(2 * kBytes);
    offpath_memory_keep(session, kept + kBytes, 1);
    exchange(p, team, kept, recv, kBytes, 3);
    REQUIRE(moved(session) == 3);
    offpath_memory_keep(session, kept + kBytes, 1);
    offpath_memory_release(session, kept + kBytes, 1);
    exchange(p, team, kept, recv, kBytes, 4);
    REQUIRE(moved(session) == 3);  // kept twice, released once
    offpath_memory_release(session, kept + kBytes, 1);
    exchange(p, team, kept, recv, kBytes, 5);
    REQUIRE(moved(session) == 4);
  });
}

TEST(Moved, StaysWithTheProgramWhenTheServiceIsLost) {
  MovingJob().run([](Process& p) {
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    constexpr size_t kBytes = 32 * kPage, kAll = 2 * kBytes;
    uint8_t *send = map_memory(kAll), *recv = map_memory(kAll);
    exchange(p, team, send, recv, kBytes, 1);
    REQUIRE(moved(session) == 2);
    p.barrier();
    if (p.rank == 0) kill(service_of(session), SIGKILL);
    REQUIRE(eventually([&] { return offpath_session_alive(session) == 0; }));
    offpath_op_t* op = nullptr;
    REQUIRE_STATUS(offpath_alltoall(team, send, recv, kBytes, &op), OFFPATH_ERR_NOT_STARTED);
    offpath_session_detach(session);
    REQUIRE(holds(recv, kBytes, 16) && holds(send, kBytes, 16 + p.rank));
    REQUIRE(madvise(recv, kBytes, MADV_DONTNEED) == 0 && std::count(recv, recv + kBytes, 0) == kBytes);
    const pid_t child = fork();
    if (child == 0) {
      memset(send, 1, kAll);
      _exit(0);
    }
    REQUIRE(ended_well(child));
    REQUIRE(holds(send, kBytes, 16 + p.rank));
    REQUIRE(munmap(send, kAll) == 0 && munmap(recv, kAll) == 0);
  });
}

TEST(Moved, ReadersSeeTheSameBytesMeanwhile) {
  MovingJob().run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    constexpr size_t kBytes = 256 * kPage;
    uint8_t* recv = map_memory(2 * kBytes);
    for (uint32_t round = 0; round < 10; ++round) {
      uint8_t* send = map_memory(2 * kBytes);
      fill(send, kBytes, p.rank), fill(send + kBytes, kBytes, p.rank);
      std::atomic<bool> over{false};
      std::atomic<uint64_t> wrong{0}, looks{0};
      std::thread reader([&] {
        do {
          for (size_t i = 0; i < 2 * kBytes; i += 509) wrong += send[i] != value_at(p.rank, i % kBytes);
          ++looks;
        } while (!over);
      });
      while (looks == 0) sched_yield();
      p.complete([&](auto op) { return offpath_alltoall(team, send, recv, kBytes, op); });
      over = true;
      reader.join();
      REQUIRE(wrong == 0);
      REQUIRE(holds(recv, kBytes, 0) && holds(recv + kBytes, kBytes, 1));
      munmap(send, 2 * kBytes);
    }
    REQUIRE(moved(session) == 11 && counters_of(session).dropped_count >= 9);
  });
}

}  // namespace
}  // namespace offpath::testing
