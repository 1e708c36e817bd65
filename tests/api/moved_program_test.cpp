// SPDX-License-Identifier: BSD-3-Clause
// What a program may do with memory that was moved: it is forgotten, or stays the program's, and no other is mistaken for it.
#include "moving_job.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace offpath::testing {
namespace {

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

TEST(Moved, OtherMemoryThatComesToLieThereIsNotMistakenForIt) {
  MovingJob().run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
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
  });
}

// The loader maps files unseen, and memory was given back unseen before.
TEST(Moved, LibrariesThatAreLoadedThereAreNotMistakenForIt) {
  MovingJob().run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
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
      p.complete([&](auto op) { return offpath_alltoall(team, place, recv, kBytes, op); });
      // From the other one's; the own block is copied here.
      REQUIRE(memcmp(recv + (1 - p.rank) * kBytes, code.data() + p.rank * kBytes, kBytes) == 0);
    }
  });
}

TEST(Moved, GivenUpPagesAreZeroAndResizedOnesKeepTheirBytes) {
  MovingJob().run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
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
  });
}

TEST(Moved, ChildrenAreOnTheirOwn) {
  MovingJob().run([](Process& p) {
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
      REQUIRE(ended_well(child));
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
  job.set("OFFPATH_MAPPED", "1");
  job.set("OFFPATH_SHARED_MEMORY_BYTES", "1048576");
  job.run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
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
  });
}

TEST(Moved, NothingIsLostWhenThereIsNoRoomForAMapping) {
  MovingJob().run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
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
  });
}

}  // namespace
}  // namespace offpath::testing
