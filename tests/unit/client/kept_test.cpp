// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations that a loss has ended stay with their window until they are taken.
#include "client/kept.hpp"

#include "posting.hpp"
#include "remote/record.hpp"

namespace offpath::client {
namespace {

class KeptOperations : public Posting {
 protected:
  KeptOperations() { window_.keeps = true; }
  void end(uint32_t slot, offpath_status_t status) {
    session::Slot& entry = session_.slot(slot);
    entry.status = status;
    entry.state.store(static_cast<uint32_t>(session::SlotState::done));
    session::WindowRecord& record = window_.shared();
    uint32_t none = 0;
    if (status != OFFPATH_OK) record.failure.compare_exchange_strong(none, static_cast<uint32_t>(status));
    ++record.completed;
  }
  uint32_t slot_of(uint64_t sequence) {
    for (uint32_t slot = 0; slot < session::kSlotCount; ++slot) {
      const offpath_op* op = session_.by_slot[slot];
      if (op != nullptr && op->sequence == sequence) return slot;
    }
    return UINT32_MAX;
  }
};

TEST_F(KeptOperations, AreThoseThatALossHasEnded) {
  for (int i = 0; i < 3; ++i) post(8);
  EXPECT_FALSE(may_have_kept(&window_));
  end(slot_of(0), OFFPATH_OK);
  end(slot_of(1), OFFPATH_ERR_PEER_LOST);
  EXPECT_TRUE(may_have_kept(&window_)) << "before the client has looked at it";
  const std::vector<Kept> kept = take_kept(&window_);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0].sequence, 1U);
  EXPECT_TRUE(kept[0].may_be_done);
  const auto origin = remote::decode_origin(kept[0].record);
  ASSERT_TRUE(origin.ok());
  EXPECT_EQ(origin->target, 1U);
  EXPECT_TRUE(take_kept(&window_).empty()) << "each once";
  end(slot_of(2), OFFPATH_OK);
  EXPECT_EQ(offpath_window_flush_test(&window_), OFFPATH_OK) << "what is kept is nobody's failure";
  EXPECT_TRUE(may_have_kept(&window_)) << "for good";
}

TEST_F(KeptOperations, AreAllOnceTheServiceIsLost) {
  offpath_op_t* op = nullptr;
  post(8);
  post(0, OFFPATH_UNLOCK, &op);
  session_.slot(slot_of(0)).state.store(static_cast<uint32_t>(session::SlotState::active));
  session_.life.lost = true;
  EXPECT_EQ(offpath_window_flush_test(&window_), OFFPATH_OK);
  EXPECT_EQ(offpath_window_completed(&window_), 2U);
  std::vector<Kept> kept = take_kept(&window_);
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_TRUE(kept[0].may_be_done) << "the service had it";
  EXPECT_FALSE(kept[1].may_be_done);
  EXPECT_EQ(sequence_of(op), 1U);
  EXPECT_EQ(offpath_op_test(op), OFFPATH_ERR_NOT_STARTED);
  offpath_op_free(op);
  post(8);
  kept = take_kept(&window_);
  ASSERT_EQ(kept.size(), 1U) << "posted after the loss";
  EXPECT_EQ(kept[0].sequence, 2U);
  EXPECT_FALSE(kept[0].may_be_done);
  offpath_op_t* closing = nullptr;
  EXPECT_EQ(give_up(&window_, &closing), OFFPATH_ERR_SERVICE_LOST);
  EXPECT_EQ(closing, nullptr);
}

TEST_F(KeptOperations, AreAllThatIsPostedOnceTheWindowIsGivenUp) {
  post(8);
  offpath_op_t* closing = nullptr;
  ASSERT_EQ(give_up(&window_, &closing), OFFPATH_OK);
  EXPECT_EQ(offpath_op_test(closing), OFFPATH_IN_PROGRESS);
  post(8);
  EXPECT_EQ(offpath_window_flush_test(&window_), OFFPATH_IN_PROGRESS) << "the service has the first one";
  EXPECT_EQ(take_kept(&window_).size(), 1U);
  end(slot_of(0), OFFPATH_OK);
  EXPECT_EQ(offpath_window_flush_test(&window_), OFFPATH_OK);
  EXPECT_TRUE(take_kept(&window_).empty());
  offpath_op_free(closing);
}

TEST_F(KeptOperations, CountOnceAllBeforeThemAreOver) {
  post(8);
  post(8);
  offpath_op_t* closing = nullptr;
  ASSERT_EQ(give_up(&window_, &closing), OFFPATH_OK);
  post(8);
  post(8);
  EXPECT_EQ(offpath_window_completed(&window_), 0U) << "the service is still at the first ones";
  end(slot_of(0), OFFPATH_OK);
  EXPECT_EQ(offpath_window_completed(&window_), 1U);
  end(slot_of(1), OFFPATH_OK);
  EXPECT_EQ(offpath_window_completed(&window_), 4U);
  post(8);
  EXPECT_EQ(offpath_window_completed(&window_), 5U);
  EXPECT_EQ(take_kept(&window_).size(), 3U);
  offpath_op_free(closing);
}

TEST_F(KeptOperations, AreNotThoseThatFailedOtherwise) {
  post(8);
  end(slot_of(0), OFFPATH_ERR_RANGE);
  EXPECT_TRUE(take_kept(&window_).empty());
  EXPECT_EQ(offpath_window_flush_test(&window_), OFFPATH_ERR_RANGE);
  EXPECT_EQ(offpath_window_flush_test(&window_), OFFPATH_OK) << "that is told once";
}

TEST_F(KeptOperations, HideNoFailureBehindThem) {
  for (int i = 0; i < 4; ++i) post(8);
  end(slot_of(0), OFFPATH_ERR_PEER_LOST);
  end(slot_of(1), OFFPATH_ERR_RANGE);
  EXPECT_EQ(offpath_window_flush_test(&window_), OFFPATH_IN_PROGRESS);
  end(slot_of(2), OFFPATH_ERR_MEMORY_FAULT);
  end(slot_of(3), OFFPATH_OK);
  EXPECT_EQ(offpath_window_flush_test(&window_), OFFPATH_ERR_RANGE);
  EXPECT_EQ(offpath_window_flush_test(&window_), OFFPATH_OK) << "the first one of a flush";
  EXPECT_EQ(take_kept(&window_).size(), 1U);
  post(8);
  end(slot_of(4), OFFPATH_ERR_RANGE);
  EXPECT_EQ(offpath_window_flush_test(&window_), OFFPATH_ERR_RANGE);
}

}  // namespace
}  // namespace offpath::client
