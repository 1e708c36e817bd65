// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a lane agree that it goes on with services after a loss: each says once, to every other, where it can be
// reached now, or that it has no service any more. Then the lane is native for good. So it is where no rank has another service
// than before: then services have lost each other, and would again. A service that dies is missed by the others a moment before its
// own ranks see it, so who keeps its service does not say so at once.
//
// Threads: under the offloader's lock.
#pragma once

#include "attach/directory.hpp"
#include "mpi/lanes/tags.hpp"
#include "mpi/lanes/words.hpp"

#include <offpath/offpath.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace offpath::mpi {

class Comeback {
 public:
  using Clock = std::chrono::steady_clock;

  // `loss`: of the lane, from 0.
  Comeback(const Seat& seat, uint64_t loss) : seat_(seat), tag_(loss_tag(loss, 1)) {}

  // Receives what has arrived. May throw bad_alloc.
  void listen();
  // Whether this rank, whose service lives, may say so. From its first call on it takes a moment, unless another rank has gone on.
  bool may_stay();
  // This rank's session from now on, and the one before; nullptr: there is none. Once. May throw bad_alloc.
  void say(offpath_session_t* session, const offpath_session_t* before);

  bool said() const { return said_; }
  // Somebody has said it.
  bool begun() const { return said_ || heard_count_ > 0; }
  // The lane is native for good. From some time on, and then on all ranks.
  bool refused() const { return has_none_ || (decided() && !has_another_); }
  bool decided() const { return said_ && heard_count_ == seat_.size - 1; }
  // Once decided: of all ranks; and this one's session.
  attach::Directory directory() const { return attach::Directory(addresses_); }
  offpath_session_t* session() const { return session_; }

 private:
  struct Where {
    uint32_t is_somewhere = 0;
    uint32_t is_elsewhere = 0;
    attach::Address address{};
  };
  void note(const Where& where, int source);

  Seat seat_;
  int tag_;
  bool said_ = false;
  bool has_none_ = false;  // some rank
  bool has_another_ = false;
  int heard_count_ = 0;
  Where own_;
  offpath_session_t* session_ = nullptr;
  std::vector<attach::Address> addresses_;
  std::optional<Clock::time_point> since_;  // it could have been said
};

}  // namespace offpath::mpi
