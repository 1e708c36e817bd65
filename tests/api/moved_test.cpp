// SPDX-License-Identifier: BSD-3-Clause
// Memory that is moved into the session where it lies: whatever a program does with it, it behaves as its own, and what
// is sent and received is right.
#include "allreduce.hpp"
#include "job.hpp"
#include "memory.hpp"
#include "window.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>

namespace offpath::testing {
namespace {

void use_moving(const char* uses = "1") { setenv("OFFPATH_MAPPED", uses, 1); }

// The longest readable mapping of a file of that name, if it is loaded.
std::pair<uint8_t*, size_t> mapping_of(const char* name) {
  uintptr_t place = 0;
  size_t bytes = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512];
  while (fgets(line, sizeof(line), maps) != nullptr) {
    uintptr_t begin = 0, end = 0;
    char readable = '-';
    if (sscanf(line, "%lx-%lx %c", &begin, &end, &readable) != 3 || readable != 'r') continue;
    if (strstr(line, name) != nullptr && end - begin > bytes) place = begin, bytes = end - begin;
  }
  fclose(maps);
  return {reinterpret_cast<uint8_t*>(place), bytes};
}

uint64_t moved(offpath_session_t* session) { return counters_of(session).moved_count; }

TEST(Moved, IsUsedInPlaceAndNotCopied) {
  Job job(2);
  job.run([](Process& p) {
    use_moving("2");
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
    Job job(2, nodes);
    job.run([](Process& p) {
      use_moving();
      offpath_session_t* session = nullptr;
      offpath_team_t* team = p.join(session);
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
      offpath_op_t* op = nullptr;
      REQUIRE_STATUS(offpath_collective(team, &sum, &op), OFFPATH_OK);
      p.wait_ok(op);
      offpath_op_free(op);
      for (size_t i = 0; i < kBytes / 8; ++i) REQUIRE(reinterpret_cast<uint64_t*>(recv)[i] == 3 * i);
      p.barrier();
      offpath_session_detach(session);
    });
  }
}

TEST(Moved, IsOffUnlessAskedFor) {
  Job job(2);
  job.run([](Process& p) {
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    uint8_t *send = map_memory(64 * kPage), *recv = map_memory(64 * kPage);
    for (uint32_t step = 1; step < 20; ++step) exchange(p, team, send, recv, 32 * kPage, step);
    REQUIRE(moved(session) == 0);
    p.barrier();
    offpath_session_detach(session);
  });
}

TEST(Moved, SpecialMemoryIsLeftAlone) {
  Job job(2);
  job.run([](Process& p) {
    use_moving();
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
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
    offpath_op_t* op = nullptr;
    REQUIRE_STATUS(offpath_alltoall(team, read_only, recv, kBytes, &op), OFFPATH_OK);
    p.wait_ok(op);
    offpath_op_free(op);
    REQUIRE(holds(recv, kBytes, 16) && holds(recv + kBytes, kBytes, 17));
    REQUIRE(moved(session) == 0);
    REQUIRE(counters_of(session).refused_kind_count >= special.size());
    p.barrier();
    offpath_session_detach(session);
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
  Job job(2);
  job.run([=](Process& p) {
    use_moving();
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    uint8_t *large = map_large(flags), *recv = map_memory(2 * kLarge);
    const bool there = large != nullptr && (!advised || madvise(large, 2 * kLarge, MADV_HUGEPAGE) == 0);
    if (!there) large = recv;  // the other process has taken the last one
    for (uint32_t step = 1; step < 4; ++step)
      exchange(p, team, large, there ? recv : map_memory(2 * kLarge), kLarge, step);
    REQUIRE(!there || (moved(session) == 1 && counters_of(session).refused_kind_count == 1));
    p.barrier();
    offpath_session_detach(session);
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
  Job job(2);
  job.run([](Process& p) {
    use_moving();
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
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
    p.barrier();
    offpath_session_detach(session);
  });
}

TEST(Moved, StaysWithTheProgramWhenTheServiceIsLost) {
  Job job(2);
  job.run([](Process& p) {
    use_moving();
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
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    REQUIRE(holds(send, kBytes, 16 + p.rank));
    REQUIRE(munmap(send, kAll) == 0 && munmap(recv, kAll) == 0);
  });
}

TEST(Moved, ReadersSeeTheSameBytesMeanwhile) {
  Job job(2);
  job.run([](Process& p) {
    use_moving();
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
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
      offpath_op_t* op = nullptr;
      REQUIRE_STATUS(offpath_alltoall(team, send, recv, kBytes, &op), OFFPATH_OK);
      p.wait_ok(op);
      offpath_op_free(op);
      over = true;
      reader.join();
      REQUIRE(wrong == 0);
      REQUIRE(holds(recv, kBytes, 0) && holds(recv + kBytes, kBytes, 1));
      munmap(send, 2 * kBytes);
    }
    REQUIRE(moved(session) == 11 && counters_of(session).dropped_count >= 9);
    p.barrier();
    offpath_session_detach(session);
  });
}

TEST(Moved, OtherMemoryThatComesToLieThereIsNotMistakenForIt) {
  Job job(2);
  job.run([](Process& p) {
    use_moving();
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    constexpr size_t kBytes = 32 * kPage, kAll = 2 * kBytes;
    uint8_t *send = map_memory(kAll), *recv = map_memory(kAll);
    exchange(p, team, send, recv, kBytes, 1);
    REQUIRE(moved(session) == 2);
    const int file = memfd_create("other", 0);
    REQUIRE(file >= 0 && ftruncate(file, kAll) == 0);
    // Over it, then into the place that it has left.
    REQUIRE(mmap(send, kAll, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == send);
    exchange(p, team, send, recv, kBytes, 2);
    REQUIRE(munmap(recv, kAll) == 0);
    REQUIRE(mmap(recv, kAll, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == recv || true);
    REQUIRE(mmap(recv, kAll, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == recv);
    uint8_t* fresh = map_memory(kAll);
    exchange(p, team, fresh, recv, kBytes, 3);
    // Given back unseen, and other plain memory there.
    REQUIRE(syscall(SYS_munmap, fresh, kAll) == 0);
    constexpr int kHow = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    REQUIRE(syscall(SYS_mmap, fresh, kAll, PROT_READ | PROT_WRITE, kHow, -1, 0) == reinterpret_cast<long>(fresh));
    exchange(p, team, fresh, recv, kBytes, 50);
    // By malloc, as programs do.
    for (uint32_t step = 4; step < 40; ++step) {
      auto* block = static_cast<uint8_t*>(malloc(kAll + kPage));
      exchange(p, team, block, recv, kBytes, step);
      free(block);
    }
    p.barrier();
    offpath_session_detach(session);
  });
}

// The loader maps files unseen, and memory was given back unseen before.
TEST(Moved, LibrariesThatAreLoadedThereAreNotMistakenForIt) {
  Job job(2);
  job.run([](Process& p) {
    use_moving();
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    constexpr size_t kBytes = 12 * kPage, kAll = 2 * kBytes;
    constexpr const char* kName = "libhwloc.so";
    uint8_t* recv = map_memory(kAll);
    const auto load = [&] { return dlopen("libhwloc.so.15", RTLD_NOW); };
    void* library = load();
    const auto [place, bytes] = mapping_of(kName);
    const bool comes_and_goes =
        library != nullptr && bytes >= kAll && dlclose(library) == 0 && mapping_of(kName).second == 0;
    p.shared.value[p.rank] = comes_and_goes ? 1 : 2;
    p.barrier();
    if (p.shared.value[0] == 1 && p.shared.value[1] == 1) {
      constexpr int kHow = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
      REQUIRE(mmap(place, kAll, PROT_READ | PROT_WRITE, kHow, -1, 0) == place);
      exchange(p, team, place, recv, kBytes, 1);
      REQUIRE(moved(session) == 2);
      REQUIRE(syscall(SYS_munmap, place, kAll) == 0);
      library = load();
      REQUIRE(mapping_of(kName) == std::make_pair(place, bytes));
      const std::vector<uint8_t> code(place, place + kAll);
      offpath_op_t* op = nullptr;
      REQUIRE_STATUS(offpath_alltoall(team, place, recv, kBytes, &op), OFFPATH_OK);
      p.wait_ok(op);
      offpath_op_free(op);
      // From the other one's; the own block is copied here.
      REQUIRE(memcmp(recv + (1 - p.rank) * kBytes, code.data() + p.rank * kBytes, kBytes) == 0);
    }
    p.barrier();
    offpath_session_detach(session);
  });
}

TEST(Moved, GivenUpPagesAreZeroAndResizedOnesKeepTheirBytes) {
  Job job(2);
  job.run([](Process& p) {
    use_moving();
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    constexpr size_t kBytes = 32 * kPage, kAll = 2 * kBytes;
    uint8_t* recv = map_memory(kAll);
    for (const int advice : {MADV_DONTNEED, MADV_FREE}) {
      uint8_t* send = map_memory(kAll);
      exchange(p, team, send, recv, kBytes, 1);
      REQUIRE(madvise(send + kPage, 3 * kPage, advice) == 0);
      if (advice == MADV_DONTNEED) REQUIRE(std::count(send + kPage, send + 4 * kPage, 0) == 3 * kPage);
      REQUIRE(holds(send, kPage, 16 + p.rank));
      REQUIRE(madvise(send, kAll, MADV_REMOVE) != 0 && errno == EINVAL);
      exchange(p, team, send, recv, kBytes, 2);
    }
    uint8_t* send = map_memory(kAll);
    exchange(p, team, send, recv, kBytes, 3);
    send = static_cast<uint8_t*>(mremap(send, kAll, 4 * kAll, MREMAP_MAYMOVE));
    REQUIRE(send != MAP_FAILED);
    REQUIRE(holds(send, kBytes, 3 * 16 + p.rank) && std::count(send + kAll, send + 4 * kAll, 0) == 3 * kAll);
    exchange(p, team, send, recv, kBytes, 4);
    send = static_cast<uint8_t*>(mremap(send, 4 * kAll, kAll, 0));
    exchange(p, team, send, recv, kBytes, 5);
    p.barrier();
    offpath_session_detach(session);
  });
}

TEST(Moved, ChildrenAreOnTheirOwn) {
  Job job(2);
  job.run([](Process& p) {
    use_moving();
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    constexpr size_t kBytes = 32 * kPage, kAll = 2 * kBytes;
    uint8_t *send = map_memory(kAll), *recv = map_memory(kAll);
    exchange(p, team, send, recv, kBytes, 1);
    for (uint32_t i = 0; i < 5; ++i) {
      int go[2];
      REQUIRE(pipe(go) == 0);
      if (i == 1) REQUIRE(mprotect(send, kAll, PROT_READ) == 0);
      const pid_t child = fork();
      if (child == 0) {
        alarm(20);
        char byte;
        const bool same = holds(send, kBytes, (i + 1) * 16 + p.rank) && holds(recv, kBytes, (i + 1) * 16);
        memset(recv, 0xEE, kAll);
        REQUIRE(read(go[0], &byte, 1) == 1);  // the parent has written
        const pid_t grandchild = fork();
        if (grandchild == 0) _exit(0);
        int ended = 0;
        REQUIRE(waitpid(grandchild, &ended, 0) == grandchild && ended == 0);
        offpath_session_detach(session);
        const bool still = holds(send, kBytes, (i + 1) * 16 + p.rank) && recv[77] == 0xEE;
        _exit(same && still ? 0 : 1);
      }
      REQUIRE(child > 0);
      REQUIRE(holds(recv, kBytes, (i + 1) * 16));
      REQUIRE(mprotect(send, kAll, PROT_READ | PROT_WRITE) == 0);
      memset(send, 0x11, kAll);
      REQUIRE(write(go[1], "x", 1) == 1);
      int status = 0;
      REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
      close(go[0]), close(go[1]);
      REQUIRE(holds(recv, kBytes, (i + 1) * 16));
      exchange(p, team, send, recv, kBytes, i + 2);
    }
    exchange(p, team, map_memory(kAll), recv, kBytes, 9);
    REQUIRE(moved(session) == 2 && counters_of(session).refused_room_count == 1);  // enough of forks
    p.barrier();
    offpath_session_detach(session);
  });
}

TEST(Moved, LimitsEndInCopies) {
  Job job(2);
  job.run([](Process& p) {
    use_moving();
    setenv("OFFPATH_SHARED_MEMORY_BYTES", "1048576", 1);
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    constexpr size_t kBytes = 64 * kPage, kAll = 2 * kBytes;
    uint8_t* recv = map_memory(kAll);
    for (uint32_t step = 1; step < 6; ++step) exchange(p, team, map_memory(kAll), recv, kBytes, step);
    const auto counters = counters_of(session);
    REQUIRE(counters.moved_count == 1 && counters.refused_room_count > 0);
    rlimit none{};
    REQUIRE(getrlimit(RLIMIT_AS, &none) == 0);
    none.rlim_cur = 1;
    REQUIRE(setrlimit(RLIMIT_AS, &none) == 0);
    exchange(p, team, recv, recv + kBytes / 2, kBytes / 4, 7);
    none.rlim_cur = none.rlim_max;
    REQUIRE(setrlimit(RLIMIT_AS, &none) == 0);
    p.barrier();
    offpath_session_detach(session);
  });
}

TEST(Moved, NothingIsLostWhenThereIsNoRoomForAMapping) {
  Job job(2);
  job.run([](Process& p) {
    use_moving();
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    constexpr size_t kBytes = 32 * kPage, kAll = 2 * kBytes;
    uint8_t *send = map_memory(2 * kAll), *recv = map_memory(2 * kAll);
    uint8_t* many = map_memory(size_t{140000} * kPage);
    size_t made = 0;  // each is a mapping of its own
    while (made < 70000 && mprotect(many + 2 * made * kPage, kPage, PROT_READ) == 0) ++made;
    REQUIRE(made < 70000);
    for (uint32_t step = 1; step < 8; ++step) {
      if (step > 1) mprotect(many + 2 * --made * kPage, kPage, PROT_READ | PROT_WRITE);
      exchange(p, team, send + 8 * kPage, recv + 8 * kPage, kBytes, step);
    }
    munmap(many, size_t{140000} * kPage);
    exchange(p, team, send + 8 * kPage, recv + 8 * kPage, kBytes, 9);
    p.barrier();
    offpath_session_detach(session);
  });
}

// ---- a program that does anything -------------------------------------------------------------------------------

constexpr size_t kMostBytes = 256 * kPage;

struct Buffer {
  enum Kind { of_malloc, mapped, lent } kind = of_malloc;
  uint8_t* data = nullptr;
  std::vector<uint8_t> expected;

  // A session that cannot lend: enough of forks.
  void allocate(offpath_session_t* session, Kind how, size_t bytes) {
    kind = how;
    void* memory = nullptr;
    if (how == lent && offpath_memory_lend(session, bytes, 1, &memory) != OFFPATH_OK) kind = of_malloc;
    data = static_cast<uint8_t*>(kind == lent ? memory : kind == mapped ? map_memory(bytes) : malloc(bytes));
    REQUIRE(data != nullptr);
    memset(data, 0x5A, bytes);
    expected.assign(bytes, 0x5A);
  }
  void release() {
    if (kind == lent) {
      REQUIRE(offpath_memory_take_back(data) == 1);
    } else {
      kind == mapped ? REQUIRE(munmap(data, expected.size()) == 0) : free(data);
    }
    data = nullptr;
  }
  void resize(size_t bytes) {
    if (kind == lent) bytes = std::min(bytes, expected.size());
    const size_t before = expected.size();
    void* there = kind == lent     ? data
                  : kind == mapped ? mremap(data, before, bytes, MREMAP_MAYMOVE)
                                   : realloc(data, bytes);
    REQUIRE(there != nullptr && there != MAP_FAILED);
    data = static_cast<uint8_t*>(there);
    if (bytes > before) memset(data + before, 0x33, bytes - before);
    expected.resize(bytes, 0x33);
  }
  void check() const { REQUIRE(memcmp(data, expected.data(), expected.size()) == 0); }
};

struct RandomProgram {
  Process& p;
  offpath_session_t* session;
  offpath_team_t* team;
  std::mt19937 common, own;  // the first draws alike on all ranks
  std::vector<Buffer> buffers = std::vector<Buffer>(8);
  uint32_t forks = 0;
  static constexpr Buffer::Kind kinds[] = {Buffer::mapped, Buffer::of_malloc, Buffer::mapped, Buffer::lent};

  size_t draw(std::mt19937& from, size_t low, size_t high) { return low + from() % (high - low + 1); }
  Buffer& any() { return buffers[own() % buffers.size()]; }

  void communicate(uint32_t step) {
    const size_t bytes =
        draw(common, 1, 4) == 1 ? draw(common, 1, 9000) : draw(common, 8, 24) * kPage + common() % 3 * 100;
    const size_t from = own() % buffers.size(), to = (from + 1 + own() % (buffers.size() - 1)) % buffers.size();
    Buffer &send = buffers[from], &recv = buffers[to];
    const auto place = [&](const Buffer& buffer) {
      const size_t room = buffer.expected.size() - p.size * bytes;
      return own() % 2 == 0 ? 0 : own() % 2 == 0 ? room / kPage * kPage : own() % (room + 1);
    };
    const size_t at = place(send), into = place(recv);
    exchange(p, team, send.data + at, recv.data + into, bytes, step);
    memcpy(send.expected.data() + at, send.data + at, p.size * bytes);  // exchange() has filled and checked them
    memcpy(recv.expected.data() + into, recv.data + into, p.size * bytes);
  }

  void write_some() {
    Buffer& buffer = any();
    const size_t at = own() % buffer.expected.size(),
                 bytes = std::min(buffer.expected.size() - at, draw(own, 1, 50000));
    const auto value = static_cast<uint8_t>(own());
    memset(buffer.data + at, value, bytes);
    memset(buffer.expected.data() + at, value, bytes);
  }

  void give_up_pages() {
    Buffer& buffer = any();
    const auto first = (reinterpret_cast<uintptr_t>(buffer.data) + kPage - 1) / kPage * kPage;
    const auto end = (reinterpret_cast<uintptr_t>(buffer.data) + buffer.expected.size()) / kPage * kPage;
    const size_t pages = (end - first) / kPage, at = own() % pages, count = draw(own, 1, pages - at);
    const size_t offset = first - reinterpret_cast<uintptr_t>(buffer.data) + at * kPage;
    if (buffer.kind == Buffer::lent) return;  // of a file, to the kernel
    REQUIRE(madvise(buffer.data + offset, count * kPage, MADV_DONTNEED) == 0);
    memset(buffer.expected.data() + offset, 0, count * kPage);
  }

  void spawn() {
    if (++forks > 2) return;
    const pid_t child = fork();
    if (child == 0) {
      for (const Buffer& buffer : buffers) buffer.check();
      for (const Buffer& buffer : buffers) memset(buffer.data, 0xC4, buffer.expected.size());
      _exit(0);
    }
    write_some();
    int status = 0;
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }

  void step(uint32_t number) {
    const size_t what = draw(common, 0, 99);
    const size_t bytes = draw(own, 4 * kMostBytes / 5, kMostBytes);
    if (what < 60) return communicate(number);
    if (what < 72) return write_some();
    if (what < 80) return give_up_pages();
    if (what < 88) return any().resize(draw(own, 100 * kPage, kMostBytes));
    if (what == 99) return spawn();
    if (what == 98) {
      malloc_trim(0);
      return;
    }
    Buffer& buffer = any();
    buffer.release();
    buffer.allocate(session, kinds[own() % 4], bytes);
  }
};

void run_program(uint32_t seed, uint32_t steps, bool of_heap, uint32_t nodes = 1) {
  Job job(2, nodes);
  job.run([=](Process& p) {
    use_moving();
    if (of_heap) mallopt(M_MMAP_THRESHOLD, 1 << 30);
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    RandomProgram program{p, session, team, std::mt19937(seed), std::mt19937(seed * 16 + p.rank + 1)};
    for (Buffer& buffer : program.buffers) buffer.allocate(session, program.kinds[program.own() % 4], kMostBytes);
    for (uint32_t step = 1; step <= steps; ++step) {
      program.step(step);
      for (const Buffer& buffer : program.buffers) {
        if (step % 16 == 0) buffer.check();
      }
    }
    const auto counters = counters_of(session);
    REQUIRE(counters.moved_count > 50 && counters.in_place_bytes > 0 && counters.dropped_count > 0);
    p.barrier();
    offpath_session_detach(session);
    for (Buffer& buffer : program.buffers) buffer.check(), buffer.release();
  });
}

uint32_t seed_of_run() {
  const char* given = getenv("OFFPATH_TEST_SEED");
  return given != nullptr ? static_cast<uint32_t>(strtoul(given, nullptr, 10)) : 20260101;
}

TEST(Moved, RandomProgramsWithMappedBlocks) { run_program(seed_of_run(), 1500, false); }
TEST(Moved, RandomProgramsWithBlocksOfTheHeap) { run_program(seed_of_run() + 1, 1500, true); }
TEST(Moved, RandomProgramsOnTwoNodes) { run_program(seed_of_run() + 2, 1000, false, 2); }

}  // namespace
}  // namespace offpath::testing
