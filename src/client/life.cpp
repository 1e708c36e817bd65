// SPDX-License-Identifier: BSD-3-Clause
// Whether a session's service lives: it hangs up, or does not answer. And the end that needs its answer.
#include "base/clock.hpp"
#include "base/process.hpp"
#include "client/session.hpp"

#include <poll.h>
#include <sched.h>

#include <algorithm>

namespace layout = offpath::session;

bool offpath_session::check_alive() {
  if (lost.load(std::memory_order_relaxed)) return false;
  const AtSocket here(*this);
  if (lost) return false;  // looked at in this order, or the socket is another file's
  if (hangs_up()) {
    note_silence();
    if (lost.exchange(true)) return false;
    header().events.fetch_add(1, std::memory_order_seq_cst);
    socket_file.remove();  // the dead service cannot any more
    return false;
  }
  listen_for_life();
  return true;
}

// Whatever it may have said before, which nobody reads.
bool offpath_session::hangs_up() {
  pollfd look{socket.get(), POLLRDHUP, 0};
  return poll(&look, 1, 0) > 0;
}

void offpath_session::listen_for_life() {
  using Verdict = offpath::base::Silence::Verdict;
  if (listening_.test_and_set(std::memory_order_acquire)) return;
  const bool answered = header().answered.load(std::memory_order_acquire) == asked_;
  const Verdict verdict = judge(silence_, offpath::base::clock_ns(CLOCK_MONOTONIC_COARSE), answered);
  if (verdict == Verdict::ask) {
    header().asked.store(++asked_, std::memory_order_seq_cst);
    wake_worker();
  }
  if (verdict == Verdict::silent) end_service();
  listening_.clear(std::memory_order_release);
}

uint32_t offpath_session::ask() {
  while (listening_.test_and_set(std::memory_order_acquire)) sched_yield();
  const uint32_t question = ++asked_;
  header().asked.store(question, std::memory_order_seq_cst);
  listening_.clear(std::memory_order_release);
  wake_worker();
  return question;
}

bool offpath_session::has_answered(uint32_t question) const {
  return static_cast<int32_t>(header().answered.load(std::memory_order_acquire) - question) >= 0;
}

// Whoever looks has listening_, or is the last one here.
offpath::base::Silence::Verdict offpath_session::judge(offpath::base::Silence& silence, uint64_t now_ns,
                                                       bool answered) {
  uint64_t spared_ns = 0;
  const auto verdict = silence.look(now_ns, answered, [&] { return spared_ns = starvation_.since_last_ns(now_ns); });
  if (verdict == offpath::base::Silence::Verdict::starved) starved_ns += spared_ns;
  return verdict;
}

// Another process may have ended it before we would have.
void offpath_session::note_silence() {
  if (silence_ms != 0 || listening_.test_and_set(std::memory_order_acquire)) return;
  const uint64_t unanswered_ns = silence_.unanswered_ns();
  if (unanswered_ns > offpath::base::silence_limit_ns() / 2)
    silence_ms = static_cast<uint32_t>(unanswered_ns / 1000000);
  listening_.clear(std::memory_order_release);
}

// It has the socket open, so it lives, after its number was made a descriptor: that is of no other process.
void offpath_session::end_service() {
  const offpath::base::Fd process = offpath::base::open_process(service_pid);
  if (hangs_up()) return;
  silence_ms = static_cast<uint32_t>(offpath::base::silence_limit_ns() / 1000000);
  offpath::base::kill_process(process, service_pid);
}

void offpath_session::shrink() {
  while (at_socket_ != 0) sched_yield();
  socket.reset();
  lent_file.reset();
  if (!heap.empty()) {  // the program has memory of it
    if (moved_memory == nullptr) segment.close_descriptor();
    return;
  }
  moved_memory.reset();
  heap = offpath::client::Heap(0);
  segment.keep_first(layout::kArenaOffset);
}

// One that is silent is ended, as it may still write into our memory.
void offpath_session::leave() {
  using offpath::base::Silence;
  const uint64_t limit_ns = offpath::base::silence_limit_ns();
  const uint64_t interval_ms = limit_ns == 0 ? 500 : Silence::interval_ns(limit_ns) / 1000000;
  const auto slice_ms = static_cast<int>(std::clamp<uint64_t>(interval_ms, 1, 1000));
  Silence silence(limit_ns);
  const uint8_t word = layout::kDetach;
  uint8_t answer = 0;
  bool hears = layout::send_message(socket.get(), &word, 1).ok();
  for (int rounds_left = 2; hears && rounds_left > 0;) {
    const auto reply = layout::receive_message(socket.get(), &answer, 1, slice_ms);
    if (reply.ok()) return;
    hears = reply.status().code() != OFFPATH_ERR_SERVICE_LOST;
    const bool silent = judge(silence, offpath::base::clock_ns(), false) == Silence::Verdict::silent;
    if (hears && silent) end_service();
    if (silent || limit_ns == 0) --rounds_left;
  }
  if (!hears) socket_file.remove();
}
