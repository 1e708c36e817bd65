// SPDX-License-Identifier: BSD-3-Clause
#include "client/successor.hpp"

#include "base/clock.hpp"
#include "base/quiet_thread.hpp"
#include "base/result.hpp"
#include "client/next_session.hpp"
#include "client/session.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace offpath::client {
namespace {

constexpr uint64_t kNapNs = 100'000'000;                 // then it looks whether the service lives
constexpr std::chrono::milliseconds kUntilItHasOne{10};  // a successor, as tasks of the next session are looked at
constexpr std::chrono::milliseconds kLook{20}, kSeldom{1000};  // at a service that leaves
constexpr int kLooks = 100;                                    // then it takes long
constexpr uint64_t kMinuteNs = 60'000'000'000;
constexpr size_t kMostLosses = 3;  // a minute

// Of this process, whose sessions may lose the same one.
bool is_lost_too_often(pid_t service) {
  static std::mutex mutex;
  static std::map<pid_t, uint64_t> losses;  // when
  std::lock_guard lock(mutex);
  const uint64_t now = base::clock_ns();
  std::erase_if(losses, [&](const auto& loss) { return now - loss.second > kMinuteNs; });
  losses.emplace(service, now);
  return losses.size() >= kMostLosses;
}

}  // namespace

// Services that are lost all the time are not followed.
bool Successor::start() {
  if (lost_.life.lost && is_lost_too_often(lost_.life.process())) return false;
  try {
    thread_ = base::quiet_thread([this] { run(); });
  } catch (const std::exception&) {  // the system has no thread left
    return false;
  }
  return true;
}

void Successor::end() {
  std::thread ends;
  {
    std::lock_guard lock(lost_.mutex);
    stopping_ = true;
    changed_.notify_all();
    if (next_ != nullptr) next_->wake_sleepers();
    ends.swap(thread_);
  }
  if (ends.joinable()) ends.join();
  for (offpath_session_t* session : std::exchange(past_, {})) offpath_session_detach(session);
  offpath_session_t* const next = std::exchange(next_, nullptr);
  if (owns_next_) offpath_session_detach(next);
}

void Successor::join() {
  std::thread ends;
  {
    std::lock_guard lock(lost_.mutex);
    if (over_) ends.swap(thread_);
  }
  if (ends.joinable()) ends.join();
}

offpath_session_t* Successor::await(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return ready_ || failed_ || stopping_; });
  return ready_ ? next_ : nullptr;
}

bool Successor::may_help() {
  if (!std::exchange(tried_, true)) failed_ = !start();
  helps_ = !failed_ && (!refused_ || lost_.life.lost);
  return helps_;
}

offpath_status_t Successor::look(offpath_session_t** next) {
  if (!may_help()) return OFFPATH_ERR_NO_SERVICE;
  if (!ready_) return OFFPATH_IN_PROGRESS;
  *next = next_;
  if (!std::exchange(may_leave_, true)) changed_.notify_all();  // not before: a session that is left looks lost
  return OFFPATH_OK;
}

bool leaves(const offpath_session_t* session) { return session != nullptr && session->leaves(); }

offpath_status_t next_session(offpath_session_t* session, offpath_session_t** next) {
  const base::ErrnoGuard errno_guard;
  if (session == nullptr || !session->mine() || (!session->life.lost && !session->leaves())) return OFFPATH_ERR_STATE;
  std::lock_guard lock(session->mutex);
  return session->successor->look(next);
}

uint32_t ask(offpath_session_t* session) { return session->life.ask(); }

bool has_answered(const offpath_session_t* session, uint32_t question) { return session->life.has_answered(question); }

void stay(offpath_session_t* session) {
  if (session == nullptr || !session->mine()) return;
  std::lock_guard lock(session->mutex);
  ++session->stays;
}

void need_not_stay(offpath_session_t* session) {
  if (session == nullptr || !session->mine()) return;
  std::lock_guard lock(session->mutex);
  --session->stays;
}

void Successor::run() {
  std::unique_lock lock(lost_.mutex);
  const bool attached = attach(lock) || attach_after_loss(lock);
  failed_ = !attached;
  if (!attached && !stopping_) {
    helps_ = false;
    for (offpath_op* op : std::exchange(waiting_, {})) lost_.finish(*op, OFFPATH_ERR_SERVICE_LOST);
    lost_.wake_sleepers();
  }
  for (bool handed_on = false; attached && !stopping_;) {
    if (!lost_.life.lost) leave_old(lock);
    if (lost_.life.lost && !std::exchange(handed_on, true)) hand_on();
    if (lost_.life.lost && may_leave_ && !has_shrunk_ && lost_.is_empty()) shrink(lock);
    move_on();
    end_past(lock);
    know_functions(lock);  // else tasks that need them end so
    ready_ = true;         // only now, so that those that are handed on are submitted in their order
    submit_all();
    changed_.notify_all();
    const uint32_t seen = offpath_session_events(next_);
    lost_.wake_sleepers();  // of what has ended before
    if (is_over()) break;
    sleep(lock, seen);
  }
  over_ = true;
  changed_.notify_all();
}

// What it is at may end.
void Successor::sleep(std::unique_lock<std::mutex>& lock, uint32_t seen) {
  if (stopping_) return;
  if (under_way_.empty()) {
    const bool soon = (may_leave_ || !past_.empty() || next_->leaves()) && looks_ < kLooks;
    if (soon) ++looks_;
    const bool waits = lost_.life.lost && (has_shrunk_ || !may_leave_);
    waits ? changed_.wait(lock) : static_cast<void>(changed_.wait_for(lock, soon ? kLook : kSeldom));
    return;
  }
  const bool looks_back = !lost_.life.lost || !waiting_.empty() || !past_.empty();
  lock.unlock();
  offpath_status_t slept = OFFPATH_IN_PROGRESS;
  const uint64_t nap_ns = looks_back ? std::chrono::nanoseconds(kUntilItHasOne).count() : kNapNs;
  do {
    slept = offpath_session_sleep(next_, seen, nap_ns);
  } while (slept == OFFPATH_IN_PROGRESS && !looks_back);
  if (slept != OFFPATH_OK && slept != OFFPATH_IN_PROGRESS) std::this_thread::sleep_for(kUntilItHasOne);
  lock.lock();
}

// Its last operations are looked at by nobody else.
void Successor::leave_old(std::unique_lock<std::mutex>& lock) {
  if (!lost_.life.check() || !may_leave_) return;
  lost_.harvest();
  if (!lost_.is_empty() || lost_.life.lost.exchange(true)) return;
  lock.unlock();
  lost_.life.leave();
  lock.lock();
}

// Whoever has asked for the next session uses it himself.
void Successor::move_on() {
  offpath_session_t* newer = nullptr;
  const bool follows =
      !may_leave_ && (!next_->life.check() || next_->leaves()) && next_session(next_, &newer) == OFFPATH_OK;
  if (!follows) return;
  past_.push_back(next_);
  std::scoped_lock both(next_->mutex, newer->mutex);
  Successor& theirs = *next_->successor;
  theirs.owns_next_ = false;
  newer->made_by = this;
  for (const auto& [ours, there] : std::exchange(functions_, {})) {
    const auto known = theirs.functions_.find(there);
    if (known != theirs.functions_.end()) functions_[ours] = known->second;
  }
  next_ = newer;
  looks_ = 0;
}

void Successor::end_past(std::unique_lock<std::mutex>& lock) {
  const auto is_used = [this](offpath_session_t& past) {
    std::lock_guard theirs(past.mutex);
    const auto is_there = [&](const offpath_op* op) { return op->again != nullptr && op->again->session == &past; };
    return past.stays != 0 || std::any_of(under_way_.begin(), under_way_.end(), is_there);
  };
  while (!stopping_ && !past_.empty() && !is_used(*past_.front())) {
    offpath_session_t* const past = past_.front();
    past_.pop_front();
    lock.unlock();
    offpath_session_detach(past);
    lock.lock();
  }
}

// Jobs may be restarted often.
void Successor::shrink(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  if (lost_.made_by != nullptr) lost_.made_by->join();
  lock.lock();
  if (!lost_.is_empty()) return;
  lost_.shrink();
  has_shrunk_ = true;
}

// Who owns such a session makes nothing there any more, so no function, either.
bool Successor::is_over() const { return has_shrunk_ && lost_.functions.empty() && under_way_.empty(); }

// Where the service only leaves, and there is no other one: all stays there.
bool Successor::attach_after_loss(std::unique_lock<std::mutex>& lock) {
  if (lost_.life.lost) return false;
  refused_ = true;
  while (!stopping_ && lost_.life.check()) changed_.wait_for(lock, kSeldom);
  refused_ = false;
  return !stopping_ && !is_lost_too_often(lost_.life.process()) && attach(lock);
}

bool Successor::attach(std::unique_lock<std::mutex>& lock) {
  if (stopping_) return false;
  lock.unlock();
  offpath_session_t* next = nullptr;
  const bool attached = offpath_session_attach(&lost_.params, &next, nullptr) == OFFPATH_OK;
  lock.lock();
  if (!attached) return false;
  next_ = next;
  next->made_by = this;
  next->timing.store(lost_.timing);
  return know_functions(lock);
}

}  // namespace offpath::client
