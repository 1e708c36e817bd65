// SPDX-License-Identifier: BSD-3-Clause
// When a posted one-sided operation wakes a sleeping service. The test plays the service.
#include "posting.hpp"

namespace {

class Doorbell : public offpath::client::Posting {
 protected:
  void fall_asleep() { session_.header().worker_sleeps = 1; }
  bool awake() { return session_.header().worker_sleeps == 0; }
  void complete(uint64_t count) { window_.shared().completed = count; }
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
