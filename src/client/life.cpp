// SPDX-License-Identifier: BSD-3-Clause
#include "client/life.hpp"

#include "base/clock.hpp"
#include "base/process.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace offpath::client {

bool Life::check() {
  if (lost.load(std::memory_order_relaxed)) return false;
  const AtSocket here(*this);
  if (lost) return false;  // looked at in this order, or the socket is another file's
  if (hangs_up()) {
    note_silence();
    if (lost.exchange(true)) return false;
    header_.events.fetch_add(1, std::memory_order_seq_cst);
    socket_file.remove();  // the dead service cannot any more
    return false;
  }
  listen();
  return true;
}

// Whatever it may have said before, which nobody reads.
bool Life::hangs_up() {
  pollfd look{socket.get(), POLLRDHUP, 0};
  return poll(&look, 1, 0) > 0;
}

void Life::listen() {
  using Verdict = base::Silence::Verdict;
  if (listening_.test_and_set(std::memory_order_acquire)) return;
  const bool answered = header_.answered.load(std::memory_order_acquire) == asked_;
  const Verdict verdict = judge(silence_, base::clock_ns(CLOCK_MONOTONIC_COARSE), answered);
  if (verdict == Verdict::ask) {
    header_.asked.store(++asked_, std::memory_order_seq_cst);
    wake_worker();
  }
  if (verdict == Verdict::silent) end_service();
  listening_.clear(std::memory_order_release);
}

uint32_t Life::ask() {
  while (listening_.test_and_set(std::memory_order_acquire)) sched_yield();
  const uint32_t question = ++asked_;
  header_.asked.store(question, std::memory_order_seq_cst);
  listening_.clear(std::memory_order_release);
  wake_worker();
  return question;
}

bool Life::has_answered(uint32_t question) const {
  return static_cast<int32_t>(header_.answered.load(std::memory_order_acquire) - question) >= 0;
}

// Whoever looks has listening_, or is the last one here.
base::Silence::Verdict Life::judge(base::Silence& silence, uint64_t now_ns, bool answered) {
  uint64_t spared_ns = 0;
  const auto verdict = silence.look(now_ns, answered, [&] { return spared_ns = starvation_.since_last_ns(now_ns); });
  if (verdict == base::Silence::Verdict::starved) starved_ns_ += spared_ns;
  return verdict;
}

// Another process may have ended it before we would have.
void Life::note_silence() {
  if (silence_ms_ != 0 || listening_.test_and_set(std::memory_order_acquire)) return;
  const uint64_t unanswered_ns = silence_.unanswered_ns();
  if (unanswered_ns > base::silence_limit_ns() / 2) silence_ms_ = static_cast<uint32_t>(unanswered_ns / 1000000);
  listening_.clear(std::memory_order_release);
}

// It has the socket open, so it lives, after its number was made a descriptor: that is of no other process.
void Life::end_service() {
  const base::Fd process = base::open_process(process_);
  if (hangs_up()) return;
  silence_ms_ = static_cast<uint32_t>(base::silence_limit_ns() / 1000000);
  base::kill_process(process, process_);
}

bool Life::wake_worker() {
  session::SegmentHeader& head = header_;
  if (head.worker_sleeps.load(std::memory_order_seq_cst) == 0) return false;
  if (head.worker_sleeps.exchange(0, std::memory_order_seq_cst) == 0) return false;
  const uint8_t doorbell = session::kDoorbell;
  const AtSocket here(*this);
  if (lost) return true;
  if (send(socket.get(), &doorbell, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN) check();
  return true;
}

void Life::close() {
  while (at_socket_ != 0) sched_yield();
  socket.reset();
}

// One that is silent is ended, as it may still write into our memory.
void Life::leave() {
  using base::Silence;
  const uint64_t limit_ns = base::silence_limit_ns();
  const uint64_t interval_ms = limit_ns == 0 ? 500 : Silence::interval_ns(limit_ns) / 1000000;
  const auto slice_ms = static_cast<int>(std::clamp<uint64_t>(interval_ms, 1, 1000));
  Silence silence(limit_ns);
  const uint8_t word = session::kDetach;
  uint8_t answer = 0;
  bool hears = session::send_message(socket.get(), &word, 1).ok();
  for (int rounds_left = 2; hears && rounds_left > 0;) {
    const auto reply = session::receive_message(socket.get(), &answer, 1, slice_ms);
    if (reply.ok()) return;
    hears = reply.status().code() != OFFPATH_ERR_SERVICE_LOST;
    const bool silent = judge(silence, base::clock_ns(), false) == Silence::Verdict::silent;
    if (hears && silent) end_service();
    if (silent || limit_ns == 0) --rounds_left;
  }
  if (!hears) socket_file.remove();
}

}  // namespace offpath::client
