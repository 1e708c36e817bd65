// SPDX-License-Identifier: BSD-3-Clause
// Memory that somebody else may write while an operation names it is not moved: nothing that he writes is lost.
#include "moving_job.hpp"
#include "window.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace offpath::testing {
namespace {

constexpr size_t kBytes = 32 * kPage;

// As after a service was replaced: the session before has a window there, and what is registered was told to it.
TEST(Moved, WhatAnotherSessionHasOpenIsNotMoved) {
  MovingJob().run([](Process& p) {
    offpath_session_t *before = nullptr, *session = nullptr;
    offpath_team_t* const old_team = p.join(before);
    uint8_t *memory = map_memory(2 * kBytes), *kept = map_memory(2 * kBytes), *recv = map_memory(2 * kBytes);
    offpath_window_t* const window = open_window(old_team, 1, memory, 2 * kBytes);
    offpath_memory_keep(before, kept, 2 * kBytes);
    p.barrier();
    session = p.attach();
    p.exchange(session);
    offpath_team_t* const team = p.make_team(session, 2);
    exchange(p, team, memory, recv, kBytes, 1);
    REQUIRE(moved(session) == 1 && counters_of(session).refused_window_count == 1);
    exchange(p, team, kept, recv, kBytes, 2);
    REQUIRE(moved(session) == 1 && counters_of(session).refused_window_count == 2);
    p.barrier();
    offpath_window_destroy(window);
    offpath_memory_release(session, kept, 2 * kBytes);  // told to whichever is the program's session by then
    exchange(p, team, memory, recv, kBytes, 3);
    exchange(p, team, kept, recv, kBytes, 4);
    REQUIRE(moved(session) == 3);
    p.barrier();
    offpath_session_detach(session);
    offpath_session_detach(before);
  });
}

TEST(Moved, ADynamicWindowAndTooManyAreOfAllSessionsToo) {
  constexpr uint32_t kMost = 4096;  // that are remembered
  MovingJob().run([](Process& p) {
    offpath_session_t *before = nullptr, *session = nullptr;
    offpath_team_t* const old_team = p.join(before);
    p.barrier();
    session = p.attach();
    p.exchange(session);
    offpath_team_t* const team = p.make_team(session, 2);
    uint8_t *memory = map_memory(2 * kBytes), *recv = map_memory(2 * kBytes), *far = map_memory(kPage);
    offpath_window_t* const anywhere = open_window(old_team, 1, nullptr, 0, OFFPATH_WINDOW_DYNAMIC);
    exchange(p, team, memory, recv, kBytes, 1);
    REQUIRE(moved(session) == 0);
    p.barrier();
    offpath_window_destroy(anywhere);
    for (uint32_t i = 0; i < kMost + 2; ++i) offpath_memory_keep(before, far, 1 + i % 2);
    exchange(p, team, memory, recv, kBytes, 2);
    REQUIRE(moved(session) == 0);
    for (uint32_t i = 0; i < kMost + 1; ++i) offpath_memory_release(before, far, 1 + i % 2);
    exchange(p, team, memory, recv, kBytes, 3);
    REQUIRE(moved(session) == 0);
    offpath_memory_release(before, far, 2);
    exchange(p, team, memory, recv, kBytes, 4);
    REQUIRE(moved(session) == 2);
    p.barrier();
    offpath_session_detach(session);
    offpath_session_detach(before);
  });
}

// The session goes with its windows: nobody writes there any more.
TEST(Moved, WindowsEndWithTheirSession) {
  MovingJob().run([](Process& p) {
    offpath_session_t *before = nullptr, *session = nullptr;
    offpath_team_t* const old_team = p.join(before);
    uint8_t *memory = map_memory(2 * kBytes), *recv = map_memory(2 * kBytes);
    open_window(old_team, 1, memory, 2 * kBytes);
    p.barrier();
    session = p.attach();
    p.exchange(session);
    offpath_team_t* const team = p.make_team(session, 2);
    p.barrier();
    offpath_session_detach(before);
    exchange(p, team, memory, recv, kBytes, 1);
    REQUIRE(moved(session) == 2);
    p.barrier();
    offpath_session_detach(session);
  });
}

// What comes after another operation names memory that this one may still write.
TEST(Moved, MemoryOfWhatComesBeforeIsNotMoved) {
  MovingJob(1, "2").run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    offpath_team_t* const second = p.make_team(session, 2);
    uint8_t *send = map_memory(2 * kBytes), *between = map_memory(2 * kBytes), *recv = map_memory(2 * kBytes);
    fill(send, kBytes, p.rank), fill(send + kBytes, kBytes, p.rank);
    const auto post = [&](offpath_team_t* on, const uint8_t* from, uint8_t* to) {
      offpath_op_t* op = nullptr;
      REQUIRE_STATUS(offpath_alltoall(on, from, to, kBytes, &op), OFFPATH_OK);
      return op;
    };
    if (p.rank == 1) p.barrier();
    offpath_op_t* const first = post(team, send, between);  // rank 0's waits for rank 1
    REQUIRE_STATUS(offpath_team_after(second, &first, 1), OFFPATH_OK);
    offpath_op_t* const then = post(second, between, recv);
    if (p.rank == 0) REQUIRE(moved(session) == 0);
    if (p.rank == 0) p.barrier();
    for (offpath_op_t* op : {first, then}) p.finish_ok(op);
    for (uint32_t peer = 0; peer < 2; ++peer) REQUIRE(holds(recv + peer * kBytes, kBytes, p.rank));
    p.barrier();
    // It has ended.
    exchange(p, second, between, recv, kBytes, 2);
    exchange(p, second, between, recv, kBytes, 3);
    REQUIRE(moved(session) == 2);
  });
}

TEST(Moved, MemoryOfATransferBeforeIsNotMoved) {
  MovingJob(1, "1").run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    const std::string name = p.folder + "-file" + std::to_string(p.rank);
    const int descriptor = open(name.c_str(), O_RDWR | O_CREAT, 0600);
    REQUIRE(descriptor >= 0 && unlink(name.c_str()) == 0 && ftruncate(descriptor, kBytes) == 0);
    offpath_file_t* file = nullptr;
    REQUIRE_STATUS(offpath_file_open(session, descriptor, &file, nullptr), OFFPATH_OK);
    uint8_t *memory = map_memory(2 * kBytes), *recv = map_memory(2 * kBytes);
    offpath_op_t *first = nullptr, *write = nullptr;
    if (p.rank == 1) p.barrier();
    fill(memory, kBytes, p.rank), fill(memory + kBytes, kBytes, p.rank);
    REQUIRE_STATUS(offpath_alltoall(team, memory, recv, kBytes, &first), OFFPATH_OK);
    const uint64_t before = moved(session);
    offpath_file_transfer_t transfer{};
    transfer.struct_bytes = sizeof(transfer);
    uint8_t* const other = map_memory(kBytes);
    fill(other, kBytes, 7);
    transfer.memory = block(other, kBytes);
    transfer.after = &first;
    transfer.after_count = 1;
    REQUIRE_STATUS(offpath_file_write(file, &transfer, &write), OFFPATH_OK);
    if (p.rank == 0) REQUIRE(moved(session) == before);
    if (p.rank == 0) p.barrier();
    for (offpath_op_t* op : {first, write}) p.finish_ok(op);
    uint8_t* const written = map_memory(kBytes);
    REQUIRE(pread(descriptor, written, kBytes, 0) == static_cast<ssize_t>(kBytes) && holds(written, kBytes, 7));
    p.barrier();
    offpath_file_close(file);
    close(descriptor);
  });
}

}  // namespace
}  // namespace offpath::testing
