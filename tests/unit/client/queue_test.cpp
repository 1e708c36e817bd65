// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations that wait for a slot. The test plays the service.
#include "posting.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <new>

namespace {

namespace layout = offpath::session;
using layout::SlotState;

// An operation that does something when it is first looked at: it lies in memory that cannot be read until then.
class Tripwire {
 public:
  explicit Tripwire(std::function<void()> act) {
    page_ = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    op_ = new (page_) offpath_op;
    act_ = std::move(act);
    struct sigaction action {};
    action.sa_handler = [](int) {
      mprotect(page_, bytes(), PROT_READ | PROT_WRITE);
      act_();
    };
    sigaction(SIGSEGV, &action, &before_);
    mprotect(page_, bytes(), PROT_NONE);
  }
  ~Tripwire() {
    sigaction(SIGSEGV, &before_, nullptr);
    op_->~offpath_op();
    munmap(page_, bytes());
  }
  Tripwire(const Tripwire&) = delete;
  Tripwire& operator=(const Tripwire&) = delete;
  offpath_op* op() { return op_; }

 private:
  static size_t bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
  static inline void* page_ = nullptr;
  static inline std::function<void()> act_;
  offpath_op* op_ = nullptr;
  struct sigaction before_ {};
};

class Queue : public offpath::client::Posting {
 protected:
  void put() { post(8); }
  void end(uint32_t slot) {
    session_.slot(slot).status = OFFPATH_OK;
    session_.slot(slot).state.store(static_cast<uint32_t>(SlotState::done), std::memory_order_release);
  }
};

TEST_F(Queue, RoomIsMadeByWhatEndsWhileTheSlotsAreLookedAt) {
  session_.free_slots = {3};
  put();
  put();
  ASSERT_EQ(session_.queue.size(), 1U) << "there is one slot";
  Tripwire looked_at([this] { end(3); });
  session_.by_slot[7] = looked_at.op();
  EXPECT_EQ(offpath_window_flush_test(&window_), OFFPATH_IN_PROGRESS);
  session_.by_slot[7] = nullptr;
  EXPECT_TRUE(session_.queue.empty());
  EXPECT_NE(session_.by_slot[3], nullptr) << "the second has the slot of the first";
  EXPECT_EQ(window_.shared().failure, 0U);
}

TEST_F(Queue, WhatNothingWillEverMakeRoomForFails) {
  session_.free_slots = {3};
  put();
  put();
  end(3);
  session_.reap_unclaimed();
  session_.free_slots = {};
  EXPECT_EQ(offpath_window_flush_test(&window_), OFFPATH_IN_PROGRESS);
  EXPECT_TRUE(session_.queue.empty());
  EXPECT_EQ(window_.shared().failure, static_cast<uint32_t>(OFFPATH_ERR_NO_MEMORY));
}

}  // namespace
