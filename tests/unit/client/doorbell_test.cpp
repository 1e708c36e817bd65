// SPDX-License-Identifier: BSD-3-Clause
// When a posted one-sided operation wakes a sleeping service. The test plays the service.
#include "client/session.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>

namespace {

namespace layout = offpath::session;

class Doorbell : public ::testing::Test {
 protected:
  Doorbell() : session_(std::move(offpath::base::Memfd::create("doorbell_test", layout::kSegmentBytes).value())) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    session_.socket = offpath::base::Fd(ends[0]);
    service_ = offpath::base::Fd(ends[1]);
    team_.session = window_.session = &session_;
    team_.size = 2;
    team_.record = session_.arena.allocate(sizeof(layout::TeamRecord));
    team_.lost = session_.arena.allocate(team_.size);
    window_.team = &team_;
    window_.record = session_.arena.allocate(sizeof(layout::WindowRecord));
  }

  void fall_asleep() { session_.header().worker_sleeps = 1; }
  bool awake() { return session_.header().worker_sleeps == 0; }
  void complete(uint64_t count) { window_.shared().completed = count; }

  void post(uint64_t bytes, offpath_remote_kind_t kind = OFFPATH_PUT, offpath_op_t** op = nullptr) {
    offpath_remote_t remote{};
    remote.struct_bytes = sizeof(remote);
    remote.kind = kind;
    remote.target = 1;
    if (kind == OFFPATH_PUT) {
      remote.target_bytes = bytes;
      remote.send.address = data_;
      remote.send.bytes = bytes;
    }
    ASSERT_EQ(offpath_remote(&window_, &remote, op), OFFPATH_OK);
  }

  offpath::base::Fd service_;
  offpath_session session_;
  offpath_team team_;
  offpath_window window_;
  const uint8_t data_[4096] = {};
};

TEST_F(Doorbell, ShortOnesBehindAnotherWaitForItsEndOrAFlush) {
  fall_asleep();
  post(8);
  EXPECT_TRUE(awake()) << "nothing was under way";
  fall_asleep();
  for (int i = 0; i < 10; ++i) post(8);
  EXPECT_FALSE(awake());
  EXPECT_EQ(offpath_window_flush_test(&window_), OFFPATH_IN_PROGRESS);
  EXPECT_TRUE(awake());
}

TEST_F(Doorbell, AlwaysRingsWhenNothingIsUnderWay) {
  for (uint64_t done = 0; done < 5; ++done) {
    fall_asleep();
    post(8);
    EXPECT_TRUE(awake());
    complete(done + 1);
  }
}

TEST_F(Doorbell, ManyShortOnesRing) {
  post(8);
  fall_asleep();
  for (int i = 0; i < 200 && !awake(); ++i) post(8);
  EXPECT_TRUE(awake());
}

TEST_F(Doorbell, LongOnesLocksAndThoseWithAHandleRingAtOnce) {
  post(8);
  fall_asleep();
  post(OFFPATH_REMOTE_INLINE_BYTES + 1);
  EXPECT_TRUE(awake());
  for (const auto kind : {OFFPATH_LOCK_SHARED, OFFPATH_UNLOCK}) {
    fall_asleep();
    post(0, kind);
    EXPECT_TRUE(awake()) << kind;
  }
  fall_asleep();
  offpath_op_t* op = nullptr;
  post(8, OFFPATH_PUT, &op);
  EXPECT_TRUE(awake());
  offpath_op_free(op);
}

}  // namespace
