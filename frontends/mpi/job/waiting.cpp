// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/waiting.hpp"

#include "attach/resting.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "mpi/job/counters.hpp"
#include "mpi/job/job.hpp"

#include <algorithm>

namespace offpath::mpi {
namespace {

constexpr uint64_t kFirstSleepNs = 100'000;
constexpr uint64_t kMaxSleepNs = 1'000'000;
constexpr uint64_t kMaxSleepBesideNativeNs = 500'000;
constexpr uint64_t kMaxPollSleepNs = 50'000;
constexpr uint32_t kSpins = 200;  // of about 50 ns: longer than a wake-up saves nothing

void cpu_relax() {
#if defined(__x86_64__)
  for (int i = 0; i < 8; ++i) __builtin_ia32_pause();
#elif defined(__aarch64__)
  for (int i = 0; i < 8; ++i) __asm__ volatile("yield");
#endif
}

}  // namespace

Waiter::Waiter(Beside beside)
    : max_sleep_ns_(beside == Beside::nothing ? kMaxSleepNs : kMaxSleepBesideNativeNs),
      sleep_ns_(kFirstSleepNs),
      spins_left_(job.spare_cores() ? kSpins : 0),
      session_(job.awaited()),
      seen_events_(offpath_session_events(session_)) {}

void Waiter::pause() {
  const base::ErrnoGuard errno_guard;
  if (spins_left_ > 0) {
    --spins_left_;
    cpu_relax();
    note_events();
    return;
  }
  sleep(max_sleep_ns_);
}

void Waiter::poll() {
  const base::ErrnoGuard errno_guard;
  if (attach::resting.needed())
    sleep(kMaxPollSleepNs);
  else
    cpu_relax();
}

void Waiter::sleep(uint64_t most_ns) {
  const bool ended = attach::sleep_until_event(session_, seen_events_, std::min(sleep_ns_, most_ns));
  if (!ended) job.look_for_starvation();
  sleep_ns_ = ended ? kFirstSleepNs : std::min(sleep_ns_ + sleep_ns_ / 2, max_sleep_ns_);
  note_events();
}

// Before the next round, so that what ends during it cuts the next sleep short.
void Waiter::note_events() {
  session_ = job.awaited();
  seen_events_ = offpath_session_events(session_);
}

WaitTimer::WaitTimer() : begin_ns_(base::clock_ns()) { offpath_session_note_wait(job.session(), begin_ns_, 0); }

WaitTimer::~WaitTimer() {
  const uint64_t end_ns = base::clock_ns();
  counters.wait_ns.fetch_add(end_ns - begin_ns_, std::memory_order_relaxed);
  offpath_session_note_wait(job.session(), begin_ns_, end_ns);
}

}  // namespace offpath::mpi
