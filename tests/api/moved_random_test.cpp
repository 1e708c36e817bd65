// SPDX-License-Identifier: BSD-3-Clause
// A program that does anything to memory that is moved, against a mirror of every byte.
#include "moving_job.hpp"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

namespace offpath::testing {
namespace {

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
    REQUIRE(ended_well(child));
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
  MovingJob(nodes).run([=](Process& p) {
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
