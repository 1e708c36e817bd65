// SPDX-License-Identifier: BSD-3-Clause
// A thread that waits inside the native library, which looks round by round and finds nothing, rests a little between two
// rounds, and no longer once something of ours has ended: on cores that processes share with each other or their service,
// each round would keep these, and strangers, from the processor. Before the service has begun anything for the job on this
// node it waits as without us. Where there is a core for each process, it rests only while the service has work for it, as a
// rest makes native messages late. A user may want rests everywhere (OFFPATH_QUIET_WAITS).
//
// Threads: rest() by any; the others by who starts and stops the job. Nobody is in rest() when the session goes.
#pragma once

#include "attach/sessions.hpp"

#include <offpath/offpath.h>

#include <atomic>
#include <cstdint>

namespace offpath::attach {

class Resting {
 public:
  struct Place {
    const Sessions* sessions;
    bool crowded;  // the node's processes outnumber its cores
    bool yields;   // the library would have yielded without us
  };
  // The job has begun, and some of its waits should rest. Before that they rest as on a crowded node: nobody knows yet,
  // and the beginning of a job is no matter of microseconds.
  void begin(const Place& place);
  // The user wants all waits to rest, also native ones and where there are cores enough. Before begin() and forbid(),
  // which then forbids nothing.
  void insist(bool (*yield_when_idle)(bool)) {
    insisted_ = true;
    if (yield_when_idle != nullptr) yield_when_idle(true);
  }
  bool insisted() const { return insisted_; }
  // The job needs no rests.
  void forbid() { state_.store(State::off, std::memory_order_release); }
  // The session goes. Waits for the end of the job rest as at its beginning, if waits have rested in between.
  void end();
  // Whoever waits, for whatever, should sleep.
  bool needed() const {
    if (state_.load(std::memory_order_acquire) != State::on) return false;
    if (insisted_) return true;
    const Sessions& sessions = *place_.sessions;
    // What is left at the service before needs it as well as what the next one does.
    const auto used = [&] { return sessions.have_gone_on() || offpath_session_used(sessions.newest()) != 0; };
    // Of the service's first operation nothing may ever end: a rank that does not rest could keep a dying service from a core.
    return (place_.crowded && used()) || sessions.busy() != nullptr;
  }
  // The library has found nothing. False: it does what it does without us.
  bool rest();

 private:
  enum class State { unknown, on, off };
  std::atomic<State> state_{State::unknown};
  Place place_{};  // while it is on
  bool insisted_ = false;
};

extern Resting resting;

// For who looks round by round himself: sleeps until something of ours ends after `seen_events`, or for so long, also if the
// service is lost. True: something has ended.
bool sleep_until_event(offpath_session_t* session, uint32_t seen_events, uint64_t ns);

}  // namespace offpath::attach
