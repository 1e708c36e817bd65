// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a lane agree that it goes on with the next team, after a loss or because a service leaves: each says once, to every
// other, where it can be reached now, and which operation is the first that it has not been asked for.
//
// After a loss it may say that it has no service any more. Then the lane is native for good. Where no rank has another service than
// before, services have only lost each other: a connection has broken, which they make again. A service that dies is missed by the
// others a moment before its own ranks see it, so who keeps its service asks it first. And whoever's service has lost another one says
// so once that is reached again: then that one knows of the loss, too, and the next team speaks by the new connection.
//
// Of a service that leaves all goes on until the word is said; then a rank holds back what it has not been asked for yet.
//
// Threads: under the offloader's lock.
#pragma once

#include "attach/directory.hpp"
#include "client/next_session.hpp"
#include "mpi/lanes/tags.hpp"
#include "mpi/lanes/words.hpp"

#include <offpath/offpath.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace offpath::mpi {

// Of connections between services, of late.
class Breaks {
 public:
  using Clock = std::chrono::steady_clock;
  // Another one; whether it is the third within a minute, and the network is what is wrong.
  bool add(Clock::time_point now) {
    const bool too_many = before_last_ && now - *before_last_ < std::chrono::minutes(1);
    before_last_ = std::exchange(last_, now);
    return too_many;
  }

 private:
  std::optional<Clock::time_point> last_, before_last_;
};

class Comeback {
 public:
  using Clock = std::chrono::steady_clock;

  // `loss`: of the lane, from 0.
  Comeback(const Seat& seat, uint64_t loss) : seat_(seat), tag_(loss_tag(loss, 1)) {}
  // Where words are said, if it was not known. Before all else.
  void sit(MPI_Comm comm) { seat_.comm = comm; }

  // Receives what has arrived. May throw bad_alloc.
  void listen();
  // Whether this rank may say that it stays at this session. `losses`: what that has lost, by member, as offpath_loss_t.
  bool may_stay(offpath_session_t* session, const std::vector<uint8_t>& losses);
  // This rank's session from now on, and the one before; nullptr: there is none. `next`: the operation. Once. May throw bad_alloc.
  void say(offpath_session_t* session, const offpath_session_t* before, uint64_t next);

  bool said() const { return said_; }
  // Somebody has said it.
  bool begun() const { return said_ || heard_count_ > 0; }
  // The lane is native for good. From some time on, and then on all ranks.
  bool refused() const { return has_none_; }
  bool decided() const { return said_ && heard_count_ == seat_.size - 1; }
  // From which operation on this rank holds back, once it has said it; once decided the same on all ranks: nobody had been asked for
  // it, or a later one.
  uint64_t next() const { return decided() ? largest_next_ : own_.next; }
  // Once decided: of all ranks; and this one's session.
  attach::Directory directory() const { return attach::Directory(addresses_); }
  offpath_session_t* session() const { return stay_.session(); }

 private:
  struct Where {
    uint32_t is_somewhere = 0;
    uint32_t is_elsewhere = 0;
    uint64_t next = 0;
    attach::Address address{};
  };
  void note(const Where& where, int source);

  Seat seat_;
  int tag_;
  bool said_ = false;
  bool has_none_ = false;  // some rank
  bool has_another_ = false;
  int heard_count_ = 0;
  uint64_t largest_next_ = 0;
  Where own_;
  client::Stay stay_;
  std::vector<attach::Address> addresses_;
  struct Asked {
    uint32_t question;
    Clock::time_point since;
  };
  std::optional<Asked> asked_;
};

}  // namespace offpath::mpi
