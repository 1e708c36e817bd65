// SPDX-License-Identifier: BSD-3-Clause
// A segment and its mirror are kept alike: what either side has written is there at the other, once.
#include "agent/mirror.hpp"

#include "../session/client_segment.hpp"
#include "tasks/record.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace offpath::agent {
namespace {

using namespace session;

constexpr uint64_t kTeam = kArenaOffset, kWindow = kArenaOffset + 512, kRecord = kArenaOffset + 4096;

// A client's segment, its mirror, and the service's view of that.
class Both : public ::testing::Test, public session::testing::ClientSegment {
 protected:
  Both() {
    auto& team = at<TeamRecord>(kTeam);
    team.size = 3;
    team.address_stride = 8;
    team.addresses = kTeam + 192;
    team.addresses_count = 3;
    team.address_of = kTeam + 224;
    team.lost = kTeam + 256;
  }
  uint32_t submit(OpKind kind) {
    const uint32_t index = next_++;
    Slot& entry = slot(index);
    entry.kind = static_cast<uint32_t>(kind);
    entry.team = kTeam;
    entry.window = kWindow;
    entry.record = kRecord;
    const bool is_task = kind == OpKind::task || kind == OpKind::function;
    entry.record_bytes = kind == OpKind::collective ? 64 : is_task ? sizeof(tasks::ResultRecord) : 0;
    entry.open = kRecord + 48;
    entry.state = static_cast<uint32_t>(SlotState::posted);
    EXPECT_TRUE(mirror_->take(submission_of(host_, index)).ok());
    EXPECT_EQ(service_.take_submission(), index);
    mirror_->follow(index);
    return index;
  }
  // Brings what the service has written to the host; how many words.
  uint32_t bring() {
    const auto body = mirror_->collect();
    if (body.empty()) return 0;
    WordsHead head;
    memcpy(&head, body.data(), sizeof(head));
    EXPECT_EQ(body.size(), sizeof(head) + head.count * sizeof(Word));
    told_ = head.told != 0;
    for (uint32_t i = 0; i < head.count; ++i) {
      Word word;
      memcpy(&word, body.data() + sizeof(head) + i * sizeof(word), sizeof(word));
      EXPECT_TRUE(may_write(word));
      store(memory.data(), word);
      last_ = word;
    }
    return head.count;
  }

  SegmentView host_ = std::move(SegmentView::open(other_mapping()).value());
  std::shared_ptr<Mirror> mirror_ = std::move(Mirror::make().value());
  SegmentView service_ = std::move(SegmentView::open(mirror_->take_memory()).value());
  uint32_t next_ = 0;
  bool told_ = false;
  Word last_;
};

TEST(Mirror, HasMemoryOfItsOwnWhereTheClientHasSharedMemory) {
  const auto of = [](uint64_t address, uint64_t bytes) {
    const auto mirror = Mirror::make(address, bytes);
    EXPECT_TRUE(mirror.ok());
    auto view = SegmentView::open(mirror.value()->take_memory());
    EXPECT_TRUE(view.ok());
    return std::pair(view->shared_address(), view->shared_bytes());
  };
  EXPECT_EQ(of(0x70000000, 1 << 20), std::pair(uint64_t{0x70000000}, uint64_t{1} << 20));
  EXPECT_EQ(of(0x70000000, (1 << 20) + 1).second, uint64_t{1} << 20);  // whole pages
  const auto [address, most] = of(0x70000000, uint64_t{1} << 60);      // as much as this machine can give
  EXPECT_LT(most, uint64_t{1} << 60);
  EXPECT_GT(most, 0U);
  EXPECT_EQ(of(0, 0).second, 0U);
}

TEST_F(Both, NothingIsBroughtTwice) {
  EXPECT_EQ(bring(), 0U);
  const uint32_t index = submit(OpKind::collective);
  bring();
  service_.slot(index).steps_left = 5;
  EXPECT_EQ(bring(), 1U);
  EXPECT_EQ(slot(index).steps_left, 5U);
  EXPECT_FALSE(told_);
  EXPECT_EQ(bring(), 0U);
}

TEST_F(Both, WhatSomebodyMayWaitForIsUrgent) {
  EXPECT_FALSE(mirror_->is_urgent());
  const uint32_t index = submit(OpKind::collective);
  service_.slot(index).steps_left = 5;
  EXPECT_FALSE(mirror_->is_urgent());
  service_.finish(index, OFFPATH_OK, Counted::yes);
  EXPECT_TRUE(mirror_->is_urgent());
  bring();
  EXPECT_FALSE(mirror_->is_urgent());
  mirror_->ask(1);
  service_.answer();
  EXPECT_TRUE(mirror_->is_urgent());
  bring();
  EXPECT_FALSE(mirror_->is_urgent());
}

TEST_F(Both, TheStateOfASlotComesLast) {
  const uint32_t index = submit(OpKind::collective);
  service_.finish(index, OFFPATH_ERR_TRUNCATED);
  EXPECT_GE(bring(), 4U);
  EXPECT_TRUE(told_);
  EXPECT_EQ(last_.offset, kSlotsOffset + index * sizeof(Slot));
  EXPECT_EQ(slot(index).state, static_cast<uint32_t>(SlotState::done));
  EXPECT_EQ(slot(index).status, OFFPATH_ERR_TRUNCATED);
  EXPECT_EQ(header().counters.failed, 1U);
  service_.slot(index).steps_left = 77;  // it may be used again already
  EXPECT_EQ(bring(), 0U);
}

// So whoever finds it done finds its result.
TEST_F(Both, TheResultOfATaskComesBeforeItsEnd) {
  for (const OpKind kind : {OpKind::task, OpKind::function}) {
    const uint32_t index = submit(kind);
    bring();
    auto& there = *reinterpret_cast<tasks::ResultRecord*>(service_.bytes_at(kRecord, sizeof(tasks::ResultRecord)));
    there = tasks::ResultRecord{7 + static_cast<int32_t>(index), 11, 42, 3, 1000, "no atom is at home"};
    EXPECT_EQ(bring(), 0U) << "the service may be writing it";
    service_.finish(index, OFFPATH_ERR_TASK, Counted::no);
    EXPECT_GT(bring(), 2U);
    EXPECT_EQ(last_.offset, kSlotsOffset + index * sizeof(Slot));
    EXPECT_EQ(memcmp(memory.data() + kRecord, &there, sizeof(there)), 0);
  }
}

TEST_F(Both, CountersByMemberAreThoseOfTheRecord) {
  submit(OpKind::team_create);
  submit(OpKind::collective);
  Atomic32* open = service_.counters_at(kRecord + 48, 3);
  open[2] = 9;
  bring();
  EXPECT_EQ(at<uint32_t>(kRecord + 48 + 8), 9U);
}

TEST_F(Both, LostMembersAndWhatHasBegunArriveBeforeTheTeamIsBroken) {
  submit(OpKind::team_create);
  bring();
  service_.bytes_at(kTeam + 256, 3)[1] = 2;
  TeamRecord* team = service_.team_record(kTeam);
  team->started = 4;
  team->broken = 1;
  EXPECT_EQ(bring(), 3U);
  EXPECT_EQ(last_.offset, kTeam + offsetof(TeamRecord, broken));
  EXPECT_EQ(memory.data()[kTeam + 256 + 1], 2);
  EXPECT_EQ(at<TeamRecord>(kTeam).started, 4U);
}

TEST_F(Both, AFailureIsTheClientsToTake) {
  submit(OpKind::window_open);
  WindowRecord* there = service_.window_record(kWindow);
  auto& here = at<WindowRecord>(kWindow);
  for (uint64_t i = 1; i <= 2; ++i) {
    there->failure = static_cast<uint32_t>(OFFPATH_ERR_RANGE);
    there->completed = i;
    bring();
    EXPECT_EQ(last_.offset, kWindow + offsetof(WindowRecord, completed)) << "what failed is known before";
    EXPECT_EQ(static_cast<int32_t>(here.failure.exchange(0)), OFFPATH_ERR_RANGE);
    EXPECT_EQ(here.completed, i);
  }
  here.failure = static_cast<uint32_t>(OFFPATH_ERR_PEER_LOST);  // the first one that was not taken stays
  there->failure = static_cast<uint32_t>(OFFPATH_ERR_RANGE);
  bring();
  EXPECT_EQ(static_cast<int32_t>(here.failure), OFFPATH_ERR_PEER_LOST);
}

TEST_F(Both, QuestionsAreAnswered) {
  mirror_->ask(3);
  EXPECT_TRUE(service_.is_asked());
  service_.answer();
  EXPECT_EQ(bring(), 1U);
  EXPECT_EQ(header().answered, 3U);
}

TEST_F(Both, NonsenseChangesNothing) {
  std::vector<uint8_t> body = submission_of(host_, 0);
  for (size_t bytes = 0; bytes < body.size(); ++bytes)
    EXPECT_FALSE(mirror_->take(std::span(body).first(bytes)).ok()) << bytes;
  body.push_back(0);
  EXPECT_FALSE(mirror_->take(body).ok());
  EXPECT_FALSE(service_.take_submission());
}

}  // namespace
}  // namespace offpath::agent
