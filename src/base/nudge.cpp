// SPDX-License-Identifier: BSD-3-Clause
#include "base/nudge.hpp"

#include "base/clock.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace offpath::base {

Status Nudge::start(std::function<void()> settle) {
  timer_ = Fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  end_ = Fd(eventfd(0, EFD_CLOEXEC));
  if (!timer_.valid() || !end_.valid()) {
    return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot make a timer");
  }
  thread_ = std::thread([this, settle = std::move(settle)] {
    settle();
    pollfd on[2] = {{timer_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}};
    // To have run is all there is to do.
    while (poll(on, 2, -1) >= 0 || errno == EINTR) {
      if (on[1].revents != 0) return;
      uint64_t expired = 0;  // none: it was cancelled meanwhile
      if (read(timer_.get(), &expired, sizeof(expired)) > 0) times_.fetch_add(1, std::memory_order_relaxed);
    }
  });
  return {};
}

Nudge::~Nudge() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(end_.get(), &one, sizeof(one));
  thread_.join();
}

void Nudge::note_sleep() {
  if (thread_.joinable()) left_ns_ = debt_.left_ns(clock_ns(), clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

void Nudge::set() {
  if (!thread_.joinable()) return;
  set_timer(left_ns_);
  is_set_ = true;
}

void Nudge::cancel() {
  if (std::exchange(is_set_, false)) set_timer(0);
}

void Nudge::set_timer(uint64_t ns) {
  const itimerspec once{{}, {0, static_cast<long>(ns)}};
  timerfd_settime(timer_.get(), 0, &once, nullptr);
}

}  // namespace offpath::base
