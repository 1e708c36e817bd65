// SPDX-License-Identifier: BSD-3-Clause
// When a worker sleeps, for how long, and to what it listens meanwhile.
#include "base/silence.hpp"
#include "service/worker.hpp"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace offpath::service {
namespace {

constexpr uint64_t kLongTransferBytes = 512 << 10;
constexpr uint64_t kWorthwhileBytes = 256 << 10;
constexpr std::chrono::microseconds kShortestNap{100};

// Of two timeouts in ms; negative: never.
int sooner(int a, int b) { return a < 0 || b < 0 ? std::max(a, b) : std::min(a, b); }

// Until an event, which stays there; by the clock's full resolution. The C library has this call from version 2.35 on.
int wait_exactly(int epoll, const timespec& most) {
#ifdef SYS_epoll_pwait2
  epoll_event event;
  return static_cast<int>(syscall(SYS_epoll_pwait2, epoll, &event, 1, &most, nullptr, 0));
#else
  errno = ENOSYS;
  return -1;
#endif
}
}  // namespace

// Announce, look again, then sleep: whoever submits after the look rings the doorbell.
void Worker::sleep() {
  bool pending = has_tasks();
  for (auto& [id, client] : clients_) {
    client->header().worker_sleeps.store(1, std::memory_order_seq_cst);
    pending |= client->has_submission();
  }
  pending |= tasks_to_run_.announce_sleep();
  const uint64_t wait_ns = engine_->wait_ns();
  const int until_told_ms = pending || wait_ns == 0 ? 0 : sooner(until_senders_are_told(), until_watch());
  const int until_tasks_ms = sooner(tasks_to_run_.timeout_ms(), balancer_.timeout_ms());
  const int timeout_ms =
      sooner(sooner(until_told_ms, until_doors_look()), sooner(until_tasks_ms, charges_.timeout_ms()));
  nudge_.note_sleep();
  if (!pending && timeout_ms != 0 && !nap(wait_ns) && arm()) {
    if (may_stand_still()) nudge_.set();
    wait_for_events(timeout_ms, wait_ns);
    nudge_.cancel();
    ++wakeups_;
  }
  tasks_to_run_.note_awake();
  for (auto& [id, client] : clients_) client->header().worker_sleeps.store(0, std::memory_order_relaxed);
}

bool Worker::arm() {
  return fabric_->arm() && std::all_of(doors_.begin(), doors_.end(), [](Door& next) { return next.door->arm(); });
}

int Worker::until_doors_look() {
  const bool owes =
      std::any_of(clients_.begin(), clients_.end(), [](const auto& entry) { return entry.second->owes_words(); });
  int left_ms = owes ? static_cast<int>(Reflection::kLaterNs / 1000000) : -1;
  for (Door& next : doors_) left_ms = sooner(left_ms, next.door->until_look());
  return left_ms;
}

// 0: they were told now, which is work; -1: there is nothing to tell.
int Worker::until_senders_are_told() {
  if (!engine_->senders_wait()) {
    senders_wait_since_.reset();
    return -1;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!senders_wait_since_) senders_wait_since_ = now;
  const auto left = *senders_wait_since_ + kTellSendersAfter - now;
  if (left.count() > 0) return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
  engine_->tell_senders();
  senders_wait_since_.reset();  // others may wait before this worker sleeps again
  return 0;
}

// Looks after those who are waited for when it is time to. -1: nobody is.
int Worker::until_watch() {
  const std::chrono::nanoseconds interval(base::Silence::interval_ns(options_.engine.silence_ns));
  if (interval.count() == 0 || !engine_->awaits()) {
    next_watch_.reset();
    return -1;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!next_watch_ || now >= *next_watch_) {
    engine_->watch(static_cast<uint64_t>(now.time_since_epoch().count()));
    next_watch_ = now + interval;
  }
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(*next_watch_ - now).count());
}

// While somebody computes and what comes next is said by a short message. Bytes that stream in may wait in the kernel.
bool Worker::may_stand_still() const {
  if (!engine_->awaits() || engine_->expects(1)) return false;
  return std::any_of(clients_.begin(), clients_.end(), [](const auto& entry) {
    const session::SegmentHeader& header = entry.second->header();
    return header.waiters.load(std::memory_order_relaxed) == 0 && header.waiting_since_ns.load() == 0;
  });
}

// Every wake-up takes the core away from a computing rank, and the kernel's socket buffers can wait a little: sleeps as
// long as it takes for a worthwhile amount to come at the present rate. False: not now, wait for the next event.
bool Worker::nap(uint64_t wait_ns) {
  if (options_.coalesce.count() == 0) return false;
  if (const uint64_t rest = engine_->rest_ns(); rest > 0) return sleep_deaf(options_.coalesce, std::min(rest, wait_ns));
  if (!engine_->expects(kLongTransferBytes)) return false;
  const uint64_t moved = engine_->moved_bytes() - std::exchange(moved_before_nap_, engine_->moved_bytes());
  if (moved < kWorthwhileBytes / 2) nap_ = std::min(nap_ * 2, options_.coalesce);
  if (moved > kWorthwhileBytes * 2) nap_ /= 2;
  nap_ = std::max<std::chrono::nanoseconds>(nap_, kShortestNap);
  return nap_ > kShortestNap && sleep_deaf(nap_, wait_ns);
}

// Hears only its clients. False: it is not worth it.
bool Worker::sleep_deaf(std::chrono::nanoseconds most, uint64_t wait_ns) {
  const timespec length{0, static_cast<long>(std::min<uint64_t>(wait_ns, most.count()))};
  if (length.tv_nsec < std::chrono::nanoseconds(kShortestNap).count()) return false;
  const int ready = wait_exactly(clients_epoll_.get(), length);
  if (ready < 0 && errno == ENOSYS) options_.coalesce = {};  // before Linux 5.11
  if (ready > 0) poll_events(clients_epoll_.get(), 0);
  ++wakeups_;
  return ready >= 0;
}

// Senders by multicast keep a rate: they wait for less than a millisecond.
void Worker::wait_for_events(int timeout_ms, uint64_t wait_ns) {
  constexpr uint64_t kLongNs = 100'000'000;
  if (wait_ns >= kLongNs) return poll_events(epoll_.get(), sooner(timeout_ms, wait_ns == UINT64_MAX ? -1 : 100));
  if (timeout_ms >= 0) wait_ns = std::min(wait_ns, static_cast<uint64_t>(timeout_ms) * 1'000'000);
  const timespec length{0, static_cast<long>(wait_ns)};
  const int ready = wait_exactly(epoll_.get(), length);
  if (ready < 0 && errno == ENOSYS) return poll_events(epoll_.get(), sooner(timeout_ms, 1));  // before Linux 5.11
  if (ready > 0) poll_events(epoll_.get(), 0);
}

// An executor that has no core of its own gets its turn when this thread sleeps.
bool Worker::leaves_core_to_tasks() const {
  return tasks_to_run_.any_on_board() && tasks_to_run_.executors() > options_.spare_cores;
}

}  // namespace offpath::service
