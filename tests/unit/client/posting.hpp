// SPDX-License-Identifier: BSD-3-Clause
// A session with a window on a team of two, whose service the test plays.
#pragma once

#include "client/session.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>

namespace offpath::client {

class Posting : public ::testing::Test {
 protected:
  Posting() : session_(std::move(base::Memfd::create("posting", session::kSegmentBytes).value())) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    session_.life.socket = base::Fd(ends[0]);
    service_ = base::Fd(ends[1]);
    team_.session = window_.session = &session_;
    team_.size = 2;
    team_.record = session_.arena.allocate(sizeof(session::TeamRecord));
    team_.lost = session_.arena.allocate(team_.size);
    window_.team = &team_;
    window_.record = session_.arena.allocate(sizeof(session::WindowRecord));
  }

  // To the other member.
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

  base::Fd service_;
  offpath_session session_;
  offpath_team team_;
  offpath_window window_;
  const uint8_t data_[4096] = {};
};

}  // namespace offpath::client
