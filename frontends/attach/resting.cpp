// SPDX-License-Identifier: BSD-3-Clause
#include "attach/resting.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <cstdint>
#include <ctime>

namespace offpath::attach {

Resting resting;

namespace {

void nap(uint64_t ns) {
  const timespec length{0, static_cast<long>(ns)};
  nanosleep(&length, nullptr);
}

// Of one thread. One that computes between two looks at the library (MPI_Test) does not wait, and must not be made to.
class Idleness {
 public:
  // It has looked and found nothing. 0: no rest yet; else for how long, in ns.
  uint64_t note_look() {
    const uint64_t now_ns = base::clock_ns();
    if (now_ns - last_look_ns_ > kRoundNs) {
      looks_ = 0;
      nap_ns_ = kFirstNapNs;
    }
    last_look_ns_ = now_ns;
    return ++looks_ > kLooks ? nap_ns_ : 0;
  }
  // Read before the next round, so that what ends during it cuts the next rest short. Of another session: 1 more than there were, as
  // what has ended there is not known.
  uint32_t seen_events(offpath_session_t* session) const {
    return session == session_ ? seen_events_ : offpath_session_events(session) - 1;
  }
  void note_rest(bool interrupted, offpath_session_t* session) {
    nap_ns_ = interrupted ? kFirstNapNs : std::min(2 * nap_ns_, kLongestNapNs);
    last_look_ns_ = base::clock_ns();
    note_events(session);
  }
  void note_events(offpath_session_t* session) {
    if ((session_ = session) != nullptr) seen_events_ = offpath_session_events(session);
  }

 private:
  static constexpr uint64_t kRoundNs = 3'000;  // of the library, and of nothing else
  static constexpr uint32_t kLooks = 4;
  // A peer's rendezvous waits for so long at most; shorter naps cost more turns of the scheduler than they save.
  static constexpr uint64_t kFirstNapNs = 50'000, kLongestNapNs = 200'000;

  uint64_t last_look_ns_ = 0;
  uint64_t nap_ns_ = kFirstNapNs;
  uint32_t looks_ = 0;
  offpath_session_t* session_ = nullptr;
  uint32_t seen_events_ = 0;  // of that
};
constinit thread_local Idleness idleness;

}  // namespace

bool sleep_until_event(offpath_session_t* session, uint32_t seen_events, uint64_t ns) {
  constexpr uint64_t kWithoutServiceNs = 100'000;  // what is left goes on natively and needs rounds
  const offpath_status_t status = offpath_session_sleep(session, seen_events, ns);
  if (status != OFFPATH_OK && status != OFFPATH_IN_PROGRESS) nap(std::min(ns, kWithoutServiceNs));
  return status == OFFPATH_OK;
}

void Resting::begin(const Place& place) {
  place_ = place;
  state_.store(State::on, std::memory_order_release);
}

void Resting::end() {
  auto on = State::on;
  state_.compare_exchange_strong(on, State::unknown, std::memory_order_acq_rel);
}

bool Resting::rest() {
  const State state = state_.load(std::memory_order_acquire);
  if (state == State::off && !insisted_) return false;
  offpath_session_t* const session = state == State::on ? place_.sessions->awaited() : nullptr;
  if (session != nullptr && !needed()) return !place_.yields;
  const uint64_t ns = idleness.note_look();
  if (ns == 0) {
    idleness.note_events(session);
    return true;
  }
  if (session == nullptr) {
    nap(ns);
    return idleness.note_rest(false, nullptr), true;
  }
  const bool interrupted = sleep_until_event(session, idleness.seen_events(session), ns);
  return idleness.note_rest(interrupted, session), true;
}

}  // namespace offpath::attach
