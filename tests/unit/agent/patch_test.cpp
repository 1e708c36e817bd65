// SPDX-License-Identifier: BSD-3-Clause
// Patches: what a submission takes along, and where one may write.
#include "agent/patch.hpp"

#include "../session/client_segment.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace offpath::agent {
namespace {

using namespace session;

class Patch : public ::testing::Test, public session::testing::ClientSegment {
 protected:
  SegmentView view() { return std::move(SegmentView::open(other_mapping()).value()); }
  std::map<uint32_t, size_t> pieces(uint32_t index) {
    std::map<uint32_t, size_t> out;
    const auto body = submission_of(view(), index);
    const auto taken = take_submission(body, [&](uint32_t offset, std::span<const uint8_t> bytes) {
      EXPECT_EQ(memcmp(memory.data() + offset, bytes.data(), bytes.size()), 0);
      out[offset] = bytes.size();
    });
    EXPECT_EQ(taken.value(), index);
    return out;
  }
  static uint32_t slot_offset(uint32_t index) { return static_cast<uint32_t>(kSlotsOffset + index * sizeof(Slot)); }
};

constexpr uint32_t kPatched = kArenaOffset + 4096;

TEST_F(Patch, ASubmissionTakesItsRecordAlong) {
  slot(7).kind = static_cast<uint32_t>(OpKind::collective);
  slot(7).record = kPatched;
  slot(7).record_bytes = 1000;
  memset(memory.data() + kPatched, 5, 1000);
  EXPECT_EQ(pieces(7), (std::map<uint32_t, size_t>{{slot_offset(7), sizeof(Slot)}, {kPatched, 1000}}));
}

TEST_F(Patch, ATeamTakesItsMembersAlong) {
  slot(0).kind = static_cast<uint32_t>(OpKind::team_create);
  slot(0).team = kArenaOffset;
  auto& team = at<TeamRecord>(kArenaOffset);
  team.size = 3;
  team.address_stride = 100;
  team.addresses = kPatched;
  team.addresses_count = 2;
  team.address_of = kPatched + 256;
  team.lost = kPatched + 512;
  const std::map<uint32_t, size_t> expected{{slot_offset(0), sizeof(Slot)},
                                            {kArenaOffset, sizeof(TeamRecord)},
                                            {kPatched, 200},
                                            {kPatched + 256, 12},
                                            {kPatched + 512, 3}};
  EXPECT_EQ(pieces(0), expected);
  for (uint64_t* field : {&team.addresses, &team.address_of, &team.lost}) {  // lies: only what is there goes along
    const uint64_t good = std::exchange(*field, kSegmentBytes - 1);
    EXPECT_EQ(pieces(0).size(), 4U);
    *field = good;
  }
  slot(0).team = kSegmentBytes - 8;
  EXPECT_EQ(pieces(0).size(), 1U);
}

TEST_F(Patch, AWindowTakesItsRecordAlong) {
  slot(1).kind = static_cast<uint32_t>(OpKind::window_open);
  slot(1).window = kArenaOffset;
  EXPECT_EQ(pieces(1).at(kArenaOffset), sizeof(WindowRecord));
}

TEST_F(Patch, NoClientWritesElsewhereIntoAMirror) {
  const auto accepted = [](uint32_t index, Piece piece) {
    std::vector<uint8_t> body(sizeof(Submission) + sizeof(Piece) + piece.bytes);
    const Submission head{index, 1};
    memcpy(body.data(), &head, sizeof(head));
    memcpy(body.data() + sizeof(head), &piece, sizeof(piece));
    bool any = false;
    const bool ok = take_submission(body, [&](uint32_t, std::span<const uint8_t>) { any = true; }).ok();
    EXPECT_EQ(ok, any);
    return ok;
  };
  EXPECT_TRUE(accepted(3, {slot_offset(3), sizeof(Slot)}));
  EXPECT_TRUE(accepted(3, {kArenaOffset, 8}));
  EXPECT_TRUE(accepted(3, {kSegmentBytes - 8, 8}));
  for (const Piece wrong : {Piece{0, 8}, Piece{slot_offset(2), 128}, Piece{slot_offset(3), 129}, Piece{kRingOffset, 4},
                            Piece{kArenaOffset - 4, 8}, Piece{kSegmentBytes - 4, 8}, Piece{UINT32_MAX, 8}}) {
    EXPECT_FALSE(accepted(3, wrong)) << wrong.offset;
  }
  EXPECT_FALSE(accepted(kSlotCount, {kArenaOffset, 8}));
}

TEST_F(Patch, NoServiceWritesElsewhereIntoASegment) {
  const auto at_slot = [](size_t field) { return slot_offset(5) + static_cast<uint32_t>(field); };
  for (const Word good : {Word{at_slot(offsetof(Slot, state)), 4}, Word{at_slot(offsetof(Slot, done_ns)), 8},
                          Word{kArenaOffset, 1}, Word{kArenaOffset + 8, 8}, Word{kArenaOffset + 4, 4, How::if_zero},
                          Word{offsetof(SegmentHeader, answered), 4}, Word{offsetof(SegmentHeader, counters), 8}}) {
    EXPECT_TRUE(may_write(good)) << good.offset;
  }
  for (const Word bad :
       {Word{0, 8}, Word{offsetof(SegmentHeader, submitted), 4}, Word{offsetof(SegmentHeader, worker_sleeps), 4},
        Word{at_slot(offsetof(Slot, record)), 8}, Word{at_slot(offsetof(Slot, state)), 8}, Word{kAliasesOffset, 8},
        Word{kArenaOffset + 1, 4}, Word{kArenaOffset, 2}, Word{kArenaOffset, 8, How::if_zero}, Word{kSegmentBytes, 1},
        Word{kSegmentBytes - 4, 8}, Word{UINT32_MAX - 7, 8}, Word{kArenaOffset, 4, How{2}}}) {
    EXPECT_FALSE(may_write(bad)) << bad.offset;
  }
}

}  // namespace
}  // namespace offpath::agent
