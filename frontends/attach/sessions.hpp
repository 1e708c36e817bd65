// SPDX-License-Identifier: BSD-3-Clause
// The sessions of a process, as its services are lost or replaced. What is made goes to the newest one; what was made in one before it
// stays there (windows, files, operations under way). So who waits has to look at them all.
#pragma once

#include <offpath/offpath.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace offpath::attach {

// Threads: any; begin() by one, before the others.
class Sessions {
 public:
  void begin(offpath_session_t* first) {
    count_.store(1, std::memory_order_relaxed);
    of(0).store(first, std::memory_order_relaxed);
    newest_.store(first, std::memory_order_release);
  }
  // From `now` on to `next`, unless another thread has been here: maybe it is at the one after that.
  void go_on(offpath_session_t* now, offpath_session_t* next) {
    if (!newest_.compare_exchange_strong(now, next, std::memory_order_acq_rel)) return;
    of(count_.load(std::memory_order_relaxed)).store(next, std::memory_order_relaxed);
    count_.fetch_add(1, std::memory_order_release);
  }
  void end() {
    newest_.store(nullptr, std::memory_order_release);
    count_.store(0, std::memory_order_release);
  }
  // Null: there is none.
  offpath_session_t* newest() const { return newest_.load(std::memory_order_acquire); }
  bool have_gone_on() const { return count_.load(std::memory_order_acquire) > 1; }
  // One at which something is under way, the newest of them; else null.
  offpath_session_t* busy() const {
    const uint32_t count = count_.load(std::memory_order_acquire);
    for (uint32_t behind = 1; behind <= count && behind <= kRemembered; ++behind) {
      offpath_session_t* const session = of(count - behind).load(std::memory_order_relaxed);
      if (session != nullptr && offpath_session_busy(session) != 0) return session;
    }
    return nullptr;
  }
  // Whose events end a wait.
  offpath_session_t* awaited() const {
    offpath_session_t* const at_work = have_gone_on() ? busy() : nullptr;
    return at_work != nullptr ? at_work : newest();
  }

 private:
  static constexpr uint32_t kRemembered = 16;  // sleeps are short, so of those before these they only end late
  std::atomic<offpath_session_t*>& of(uint32_t number) { return sessions_[number % kRemembered]; }
  const std::atomic<offpath_session_t*>& of(uint32_t number) const { return sessions_[number % kRemembered]; }

  std::atomic<offpath_session_t*> newest_{nullptr};
  std::atomic<uint32_t> count_{0};
  std::array<std::atomic<offpath_session_t*>, kRemembered> sessions_{};
};

}  // namespace offpath::attach
