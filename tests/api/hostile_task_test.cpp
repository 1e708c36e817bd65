// SPDX-License-Identifier: BSD-3-Clause
// Functions and tasks whose records in the session segment lie. The service refuses or fails them, and goes on.
#include "../unit/collective/raw.hpp"
#include "hostile.hpp"

#include "tasks/record.hpp"

#include <cstdlib>
#include <random>

namespace offpath::testing {
namespace {

class Liar {
 public:
  Liar(const Segment& segment, int socket) : segment_(segment), socket_(socket) {}

  // How it ended; a task that comes after one that never ends does not.
  offpath_status_t post(OpKind kind, uint64_t record, uint64_t address = 0, uint64_t bytes = 0, bool await = true) {
    const uint32_t index = next_++ % 512;
    Slot& slot = segment_.slot(index);
    slot.kind = static_cast<uint32_t>(kind);
    slot.record = record;
    slot.sequence = next_;
    slot.address = address;
    slot.bytes = bytes;
    slot.status = OFFPATH_OK;
    slot.state.store(static_cast<uint32_t>(SlotState::posted));
    segment_.submit(index);
    ring(socket_);
    if (!await) return OFFPATH_IN_PROGRESS;
    REQUIRE(eventually([&] { return slot.state.load() == static_cast<uint32_t>(SlotState::done); }));
    return base::known_code(slot.status);
  }
  offpath_status_t post(OpKind kind, const std::vector<uint8_t>& record) {
    segment_.write(kArenaOffset + kRecordAt, record);
    return post(kind, kArenaOffset + kRecordAt, static_cast<uint64_t>(segment_.memory.fd()));
  }
  uint32_t next() const { return next_ % 512; }

 private:
  const Segment& segment_;
  const int socket_;
  uint32_t next_ = 1;
};

tasks::Task some_task(uint32_t function) {
  static uint8_t bytes[64];
  tasks::Task task;
  task.function = function;
  task.argument = {1, 2, 3};
  task.ranges = {{reinterpret_cast<uint64_t>(bytes), 8, OFFPATH_TASK_IN, 0},
                 {reinterpret_cast<uint64_t>(bytes + 8), 8, OFFPATH_TASK_INOUT, 0}};
  task.after = {tasks::kEndedWell};
  return task;
}

TEST(HostileClient, TasksThatLie) {
  setenv("OFFPATH_TASK_EXECUTORS", "2", 1);
  run_liar([](const Segment& segment, const AttachReply&, int socket) {
    Liar liar(segment, socket);
    // Before any function is registered.
    REQUIRE(liar.post(OpKind::task, tasks::encode(some_task(0), nullptr)) == OFFPATH_ERR_ARGUMENT);
    REQUIRE(liar.post(OpKind::task_cancel, 0, UINT64_MAX, 1) == OFFPATH_OK);
    REQUIRE(liar.post(OpKind::task_cancel, 0, 7, 8) == OFFPATH_OK);
    const auto function = tasks::encode(tasks::Function{OFFPATH_TEST_FUNCTIONS, "nothing", "nothing 1", true});
    for (const uint64_t wild : {uint64_t{0}, kSegmentBytes - 8, uint64_t{kSegmentBytes}, UINT64_MAX - 16}) {
      REQUIRE(liar.post(OpKind::function, wild) == OFFPATH_ERR_ARGUMENT);
      REQUIRE(liar.post(OpKind::task, wild) == OFFPATH_ERR_ARGUMENT);
    }
    // A descriptor that is none, or another one: then nothing is mapped.
    segment.write(kArenaOffset + kRecordAt, function);
    REQUIRE(liar.post(OpKind::function, kArenaOffset + kRecordAt, UINT64_MAX) == OFFPATH_OK);
    tasks::ResultRecord result;
    memcpy(&result, &segment.at<uint8_t>(kArenaOffset + kRecordAt), sizeof(result));
    REQUIRE(liar.post(OpKind::task, tasks::encode(some_task(result.function), nullptr)) == OFFPATH_OK);
    REQUIRE(liar.post(OpKind::task, tasks::encode(some_task(result.function + 1), nullptr)) == OFFPATH_ERR_ARGUMENT);
    auto own = some_task(result.function);
    own.after = {liar.next()};
    REQUIRE(liar.post(OpKind::task, tasks::encode(own, nullptr)) == OFFPATH_ERR_ARGUMENT);
    own.after = {kSlotCount};
    REQUIRE(liar.post(OpKind::task, tasks::encode(own, nullptr)) == OFFPATH_ERR_ARGUMENT);
    // A word of it at a time.
    std::mt19937_64 random(7);
    const auto good = tasks::encode(some_task(result.function), nullptr);
    for (size_t at = sizeof(tasks::ResultRecord); at + 4 <= good.size(); at += 4) {
      for (const uint32_t wild : {UINT32_MAX, 0x80000001U, static_cast<uint32_t>(random())}) {
        segment.write(kArenaOffset + kRecordAt, good);
        segment.at<uint32_t>(kArenaOffset + kRecordAt + at) = wild;
        [[maybe_unused]] const auto status = liar.post(OpKind::task, kArenaOffset + kRecordAt);
      }
    }
    for (size_t at = sizeof(tasks::ResultRecord); at + 4 <= function.size(); at += 4) {
      segment.write(kArenaOffset + kRecordAt, function);
      segment.at<uint32_t>(kArenaOffset + kRecordAt + at) = static_cast<uint32_t>(random());
      REQUIRE(liar.post(OpKind::function, kArenaOffset + kRecordAt) != OFFPATH_OK ||
              at + 4 <= sizeof(tasks::ResultRecord) + 16);
    }
    // Gates of no team, of nothing, of too much.
    const std::vector<uint8_t> gate(4, 0xFF);
    REQUIRE(liar.post(OpKind::gate, gate) == OFFPATH_ERR_ARGUMENT);
    for (const uint64_t wild : {uint64_t{0}, kSegmentBytes - 8, uint64_t{kSegmentBytes}, UINT64_MAX - 16})
      REQUIRE(liar.post(OpKind::gate, wild) == OFFPATH_ERR_ARGUMENT);
    // Slots that are used twice, all at once.
    segment.write(kArenaOffset + kRecordAt, good);
    for (int i = 0; i < 2000; ++i)
      liar.post(i % 3 == 0 ? OpKind::task_cancel : OpKind::task, kArenaOffset + kRecordAt, 5, 6, false);
  });
}

// What waits for a gate is still posted.
TEST(HostileClient, WhatWaitsForAGateIsPostedAgain) {
  run_liar([](const Segment& segment, const AttachReply& reply, int socket) {
    make_team(segment, reply, socket, 1);
    Liar liar(segment, socket);
    REQUIRE(liar.post(OpKind::function, tasks::encode(tasks::Function{OFFPATH_TEST_FUNCTIONS, "misbehave",
                                                                      "misbehave 1", true})) == OFFPATH_OK);
    tasks::ResultRecord result;
    memcpy(&result, &segment.at<uint8_t>(kArenaOffset + kRecordAt), sizeof(result));
    const auto post = [&](OpKind kind, uint64_t at, const std::vector<uint8_t>& record, bool await) {
      segment.write(kArenaOffset + kRecordAt + at, record);
      segment.slot(liar.next()).team = kArenaOffset;
      return liar.post(kind, kArenaOffset + kRecordAt + at, 0, 0, await);
    };
    tasks::Task endless;
    endless.function = result.function;
    endless.argument = {'w'};
    const uint32_t task = liar.next();
    post(OpKind::task, 0, tasks::encode(endless, nullptr), false);
    uint64_t names = 0;
    std::vector<uint8_t> gate = tasks::encode_gate(1, &names);
    memcpy(&gate[names], &task, sizeof(task));
    post(OpKind::gate, 4096, gate, false);
    collective::testing::Raw barrier{};
    barrier.head.kind = OFFPATH_BARRIER;
    const uint32_t again = liar.next();
    post(OpKind::collective, 8192, encode(barrier), false);
    for (int i = 0; i < 5; ++i) segment.submit(again);
    REQUIRE(liar.post(OpKind::task_cancel, 0, task, segment.slot(task).sequence) == OFFPATH_OK);
    REQUIRE(eventually([&] { return segment.slot(again).state.load() == static_cast<uint32_t>(SlotState::done); }));
    REQUIRE(post(OpKind::collective, 8192, encode(barrier), true) == OFFPATH_OK);
    REQUIRE(segment.slot(again).status == OFFPATH_ERR_DEPENDENCE);  // as the task was cancelled
    REQUIRE(segment.header().counters.completed.load() == 3);       // with the task
  });
}

}  // namespace
}  // namespace offpath::testing
