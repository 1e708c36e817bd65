// SPDX-License-Identifier: BSD-3-Clause
// Collectives whose records in the session segment are lies.
#include "../unit/collective/raw.hpp"
#include "hostile.hpp"

#include <cstddef>
#include <random>

namespace offpath::testing {
namespace {

using collective::CollectiveRecord;
using collective::testing::Raw;

// Of member 0 of two.
Raw good_exchange() {
  Raw out{};
  out.head.kind = OFFPATH_EXCHANGE;
  out.send = {{0, 0, reinterpret_cast<uint64_t>(&probe), 8, 0, 0}, {1, 0, reinterpret_cast<uint64_t>(&probe), 8, 1, 0}};
  out.recv = {{0, 0, reinterpret_cast<uint64_t>(&probe), 8, 0, 0}};
  out.layouts = {{4, 4, 2, 0}};
  out.ranges = {{2, 2}, {0, 2}};
  return out;
}

void write_record(const Segment& segment, uint32_t index, const Raw& arguments) {
  segment.slot(index).record = kArenaOffset + kRecordAt;
  segment.write(kArenaOffset + kRecordAt, encode(arguments));
}

TEST(HostileClient, SequencesOutOfOrder) {
  run_liar([](const Segment& segment, const AttachReply& reply, int socket) {
    make_team(segment, reply, socket, 2);
    uint32_t index = 1;
    // Gaps are allowed, steps back are not, nor numbers that the services use otherwise.
    constexpr uint64_t kLast = kMaxSequence - 1;
    for (const uint64_t sequence : {uint64_t{0}, uint64_t{7}, uint64_t{0}, uint64_t{7}, uint64_t{3}, UINT64_MAX,
                                    kLast + 1, kLast, kLast, kLast + 1, UINT64_MAX - 1, uint64_t{0}, uint64_t{8}}) {
      segment.slot(index).sequence = sequence;
      write_record(segment, index, good_exchange());
      post_slot(segment, index, OpKind::collective, socket);
      const bool right = index == 1 || index == 2 || index == 8;
      REQUIRE((segment.slot(index).status == OFFPATH_ERR_ARGUMENT) != right);
      ++index;
    }
    REQUIRE(segment.at<TeamRecord>(kArenaOffset).started.load() == kMaxSequence);
  });
}

TEST(HostileClient, ImpossibleCollectives) {
  run_liar([](const Segment& segment, const AttachReply& reply, int socket) {
    make_team(segment, reply, socket, 2);
    uint32_t index = 1;
    const auto post = [&] {
      segment.slot(index).sequence = index - 1;  // what is refused counts
      post_slot(segment, index, OpKind::collective, socket);
      const Slot& slot = segment.slot(index++);
      // It is begun first, and refused a while later.
      REQUIRE(eventually([&] { return slot.state == static_cast<uint32_t>(SlotState::done); }));
      return slot.status;
    };
    const auto refuse = [&](auto change) {
      Raw arguments = good_exchange();
      change(arguments);
      write_record(segment, index, arguments);
      REQUIRE(post() == OFFPATH_ERR_ARGUMENT);
    };
    for (const uint32_t wild : {0U, 10U, 77U, UINT32_MAX}) {
      refuse([&](Raw& a) { a.head.kind = wild; });
      if (wild != 0) refuse([&](Raw& a) { a.head.algorithm = wild > 10 ? wild : 11; });
    }
    for (uint32_t kind = OFFPATH_BARRIER; kind <= OFFPATH_EXSCAN; ++kind) {  // blocks that it does not take
      refuse([&](Raw& a) { a.head.kind = kind; });
    }
    for (uint32_t kind = OFFPATH_REDUCE; kind <= OFFPATH_EXSCAN; ++kind) {
      const auto reduction = [&](uint32_t op, uint32_t element) {
        refuse([&](Raw& a) {
          a.head.kind = kind, a.head.op = op, a.head.element = element;
          a.send.resize(1), a.recv.resize(1);
          a.counts_bytes = {8, 0};
        });
      };
      reduction(0, 0), reduction(OFFPATH_OP_SUM, 0), reduction(0, OFFPATH_ELEMENT_I64);
      reduction(UINT32_MAX, OFFPATH_ELEMENT_I64), reduction(OFFPATH_OP_SUM, UINT32_MAX);
      reduction(OFFPATH_OP_SUM, OFFPATH_ELEMENT_FLONG);  // 8 bytes are no multiple of 16
      reduction(OFFPATH_OP_MINLOC, OFFPATH_ELEMENT_I64);
    }
    refuse([](Raw& a) { a.send[1].peer = 2; });
    refuse([](Raw& a) { a.recv[0].peer = UINT32_MAX; });
    refuse([](Raw& a) { a.send[1].layout = 2; });
    refuse([](Raw& a) { a.send[1].layout = UINT32_MAX; });
    refuse([](Raw& a) { a.recv[0].bytes = UINT64_MAX; });
    refuse([](Raw& a) { a.send[1].bytes = uint64_t{1} << 47; });
    refuse([](Raw& a) { a.layouts[0].size_bytes = 0; });
    refuse([](Raw& a) { a.layouts[0].size_bytes = 5; });
    refuse([](Raw& a) { a.layouts[0] = {0, 4, 0, 0}, a.ranges.clear(); });
    refuse([](Raw& a) { a.ranges[0].bytes = UINT64_MAX, a.ranges[1].bytes = 5; });
    refuse([](Raw& a) { a.ranges.pop_back(); });
    for (const size_t count : {offsetof(CollectiveRecord, send_count), offsetof(CollectiveRecord, recv_count),
                               offsetof(CollectiveRecord, counts_count), offsetof(CollectiveRecord, layouts_count),
                               offsetof(CollectiveRecord, ranges_count)}) {
      for (const uint32_t wild : {UINT32_MAX, 0x80000000U, 0x08000000U}) {
        write_record(segment, index, good_exchange());
        segment.at<uint32_t>(kArenaOffset + kRecordAt + count) = wild;
        REQUIRE(post() == OFFPATH_ERR_ARGUMENT);
      }
    }
    for (const uint64_t wild : {uint64_t{0}, kSegmentBytes - 39, UINT64_MAX - 16}) {
      write_record(segment, index, good_exchange());
      segment.slot(index).record = wild;
      REQUIRE(post() == OFFPATH_ERR_ARGUMENT);
    }
    REQUIRE(segment.at<TeamRecord>(kArenaOffset).started.load() == index - 1);
  });
}

// Arguments that are fine, and places in the segment that are not.
TEST(HostileClient, CountersThatLieNowhere) {
  run_liar([](const Segment& segment, const AttachReply& reply, int socket) {
    make_team(segment, reply, socket, 1);
    uint32_t index = 1;
    for (const uint64_t wild : {uint64_t{0}, uint64_t{kArenaOffset - 4}, kArenaOffset + kOpenAt + 1, kSegmentBytes - 2,
                                uint64_t{kSegmentBytes}, UINT64_MAX - 3, UINT64_MAX}) {
      Raw own = good_exchange();
      own.send.resize(1);
      write_record(segment, index, own);
      Slot& slot = segment.slot(index);
      slot.kind = static_cast<uint32_t>(OpKind::collective);
      slot.team = kArenaOffset;
      slot.sequence = index - 1;
      slot.open = wild;
      slot.state.store(static_cast<uint32_t>(SlotState::posted));
      segment.submit(index++);
      ring(socket);
      REQUIRE(eventually([&] { return slot.state.load() == static_cast<uint32_t>(SlotState::done); }));
      REQUIRE(slot.status == OFFPATH_OK);
    }
  });
}

TEST(HostileClient, MovingOffsetsWhileServed) {
  run_liar([](const Segment& segment, const AttachReply& reply, int socket) {
    make_team(segment, reply, socket, 2);
    write_record(segment, 1, good_exchange());
    post_slot(segment, 1, OpKind::collective, socket);
    Slot& slot = segment.slot(1);
    slot.open = UINT64_MAX - 1;
    slot.record = UINT64_MAX - 1;
    slot.team = 12345;
    auto& record = segment.at<TeamRecord>(kArenaOffset);
    record.lost = UINT64_MAX - 1;
    record.size = UINT32_MAX;
    record.addresses = 1;
  });
}

TEST(HostileClient, RandomSegments) {
  run_liar([](const Segment& segment, const AttachReply& reply, int socket) {
    std::mt19937_64 random(4);
    make_team(segment, reply, socket, 3);
    for (uint32_t i = 1; i < 900; ++i) {
      Slot& slot = segment.slot(i);
      auto* bytes = reinterpret_cast<uint8_t*>(&slot) + 12;
      for (size_t b = 0; b < sizeof(Slot) - 12; ++b) bytes[b] = random() % 3 == 0 ? static_cast<uint8_t>(random()) : 0;
      slot.sequence = segment.at<TeamRecord>(kArenaOffset).started.load();
      if (random() % 2 == 0) {
        write_record(segment, i, good_exchange());
        segment.at<uint32_t>(kArenaOffset + kRecordAt) = static_cast<uint32_t>(random() % 11);
        for (uint64_t left = random() % 4; left > 0; --left) {
          segment.memory.data()[kArenaOffset + kRecordAt + random() % 200] = static_cast<uint8_t>(random());
        }
      }
      post_slot(segment, i, static_cast<OpKind>(random() % 8 == 0 ? random() % 6 : 3), socket);
      if (random() % 8 == 0) segment.memory.data()[random() % 8192 + kArenaOffset] ^= 0x80;
    }
  });
}

}  // namespace
}  // namespace offpath::testing
