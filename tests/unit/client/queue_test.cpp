// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations that wait for a slot. The test plays the service.
#include "client/session.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/socket.h>
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

class Queue : public ::testing::Test {
 protected:
  Queue() : session_(std::move(offpath::base::Memfd::create("queue_test", layout::kSegmentBytes).value())) {
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

  void put() {
    offpath_remote_t remote{};
    remote.struct_bytes = sizeof(remote);
    remote.kind = OFFPATH_PUT;
    remote.target = 1;
    remote.target_bytes = remote.send.bytes = sizeof(data_);
    remote.send.address = data_;
    ASSERT_EQ(offpath_remote(&window_, &remote, nullptr), OFFPATH_OK);
  }
  void end(uint32_t slot) {
    session_.slot(slot).status = OFFPATH_OK;
    session_.slot(slot).state.store(static_cast<uint32_t>(SlotState::done), std::memory_order_release);
  }

  offpath::base::Fd service_;
  offpath_session session_;
  offpath_team team_;
  offpath_window window_;
  const uint8_t data_[8] = {};
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
