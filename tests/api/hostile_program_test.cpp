// SPDX-License-Identifier: BSD-3-Clause
// Vector programs whose records lie. The service refuses or fails them, and goes on.
#include "hostile.hpp"

#include <random>

namespace offpath::testing {
namespace {

// A program that would be fine if its arrays were shared memory.
std::vector<uint8_t> good_program() {
  const ProgramRecord head{100, 0x10000, 4, 0, 1, 2, 1, 1, 1, 2, 4, kNamesCrossing};
  const uint32_t crossing[4] = {1, 1, 0, 1};
  const uint64_t vectors[2] = {0x20000, 0x30000};
  const MatrixRecord matrix{0, 10, 0x40000, 0x50000, 0x60000, 30, 100, 0, 1};
  const ScalarStepRecord steps[2] = {{OFFPATH_SCALAR_COPY, 0, 0, 0}, {OFFPATH_SCALAR_DIVIDE, 1, 0, 1}};
  const StatementRecord statements[2] = {{OFFPATH_UPDATE, 0, 2, 0}, {OFFPATH_DOT, 1, 2, 0}};
  const TermRecord terms[4] = {{0, 0}, {1, 1}, {0, 0}, {0, 1}};
  std::vector<uint8_t> out;
  const auto add = [&](const auto& part) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&part);
    out.insert(out.end(), bytes, bytes + sizeof(part));
  };
  add(head), add(vectors), add(matrix), add(steps), add(statements), add(terms), add(crossing);
  return out;
}

TEST(HostileClient, ProgramsThatLie) {
  run_liar([](const Segment& segment, const AttachReply& reply, int socket) {
    make_team(segment, reply, socket, 1);
    uint32_t index = 1;
    const auto post = [&](uint64_t record) {
      Slot& slot = segment.slot(index % 64);
      slot.kind = static_cast<uint32_t>(OpKind::program);
      slot.team = kArenaOffset;
      slot.sequence = index - 1;
      slot.record = record;
      slot.open = kArenaOffset + kOpenAt;
      slot.status = OFFPATH_OK;
      slot.state.store(static_cast<uint32_t>(SlotState::posted));
      segment.submit(index++ % 64);
      ring(socket);
      REQUIRE(eventually([&] { return slot.state.load() == static_cast<uint32_t>(SlotState::done); }));
      return slot.status;
    };
    segment.write(kArenaOffset + kRecordAt, good_program());
    REQUIRE(post(kArenaOffset + kRecordAt) == OFFPATH_ERR_MEMORY_FAULT);  // nothing is shared
    for (const uint64_t wild : {uint64_t{0}, kSegmentBytes - 8, uint64_t{kSegmentBytes}, UINT64_MAX - 16}) {
      REQUIRE(post(wild) == OFFPATH_ERR_ARGUMENT);
    }
    // A word of it at a time, so that every count, index and address lies.
    std::mt19937_64 random(7);
    for (size_t at = 0; at + 4 <= good_program().size(); at += 4) {
      for (const uint32_t wild : {UINT32_MAX, 0x80000001U, static_cast<uint32_t>(random())}) {
        segment.write(kArenaOffset + kRecordAt, good_program());
        segment.at<uint32_t>(kArenaOffset + kRecordAt + at) = wild;
        REQUIRE(post(kArenaOffset + kRecordAt) != OFFPATH_OK);
      }
    }
  });
}

}  // namespace
}  // namespace offpath::testing
