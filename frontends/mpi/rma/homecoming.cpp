// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/rma/homecoming.hpp"

#include "base/clock.hpp"
#include "client/kept.hpp"
#include "mpi/job/job.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/native.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace offpath::mpi {

Homecoming::Homecoming(offpath_window_t* window, const ServiceTeam& team, MPI_Comm comm, int rank, int size,
                       AtHome part)
    : window_(window),
      team_(team),
      rank_(rank),
      letters_(comm, rank),
      part_(std::move(part)),
      held_(static_cast<size_t>(size), Held::nothing),
      has_told_(static_cast<size_t>(size)),
      is_lost_(static_cast<size_t>(size)) {}

void Homecoming::attend() {
  const Inside inside;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || closed_) return;
  try {
    attend_to_all();
  } catch (const std::exception&) {  // no memory
  }
}

void Homecoming::attend_to_all() {
  letters_.receive();
  take_letters();
  look();
  if (state_ == State::at_services) collect();
  if (state_ == State::at_services) return;
  say_holds();
  if (state_ == State::turned) give_up_part();
  part_.serve(letters_);
  // Before they are collected, as none comes later then that was posted before.
  const bool ended = gives_up_ && offpath_window_completed(window_) >= offpath_window_issued(window_);
  if (collect() && ended) redoing_.ask(letters_);
  take_letters();  // to itself
}

void Homecoming::take_letters() {
  while (Letter* letter = letters_.next()) {
    take(*letter);
    letters_.drop(*letter);
  }
}

void Homecoming::look() {
  const uint64_t now_ns = base::clock_ns(CLOCK_MONOTONIC_COARSE);
  if (now_ns - looked_ns_ < Offloader::kLookNs) return;
  looked_ns_ = now_ns;
  const bool is_lost = !team_.alive() || team_.parting();
  if (is_lost && !stays_) turn();
  if (state_ != State::at_services) forget_lost();
}

void Homecoming::turn() {
  if (state_ != State::at_services) return;
  state_ = State::turned;
  turned_.store(true, std::memory_order_release);
  offloader.look_often(true);
  say_why();
  say_holds();
}

// Before anything else that a member hears from here.
void Homecoming::say_holds() {
  for (; said_holds_ < static_cast<int>(held_.size()); ++said_holds_) {
    const Held held = held_[static_cast<size_t>(said_holds_)];
    letters_.send(said_holds_, {.said = Letter::Said::holds, .is = static_cast<uint8_t>(held)});
  }
}

void Homecoming::say_why() const {
  if (!team_.alive()) return job.report_lost_service();
  if (const Parting parting = team_.parting()) job.report_parting(parting, true, Job::kWindowsOnly);
}

// False: there is no memory for them.
bool Homecoming::collect() {
  if (!client::may_have_kept(window_)) return true;
  try {
    if (kept_.empty()) kept_ = client::take_kept(window_);
    if (!kept_.empty()) turn();
    redoing_.add(kept_);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

void Homecoming::take(Letter& letter) {
  using enum Letter::Said;
  turn();
  switch (letter.head.said) {
    case holds:
      return take_holds(letter);
    case operation:
    case lock_shared:
    case lock_exclusive:
    case unlock:
      return part_.take(letter);
    case done:
      return redoing_.take(letter);
    case granted:
      return take_granted(letter);
  }
}

void Homecoming::take_holds(const Letter& letter) {
  if (letter.head.is > static_cast<uint8_t>(Held::exclusive)) return;
  part_.note_held(letter.from, static_cast<Held>(letter.head.is));
  has_told_[static_cast<size_t>(letter.from)] = true;
}

void Homecoming::take_granted(const Letter& letter) {
  const auto found = asked_.find(letter.head.id);
  if (found == asked_.end() || found->second.target != letter.from) return;
  found->second.status = base::known_code(letter.head.status);
}

// Until there is room to ask for it, it is not asked for.
void Homecoming::give_up_part() {
  bool is_lost = !team_.alive();
  if (!gives_up_) {
    const offpath_status_t status = client::give_up(window_, &giving_up_);
    is_lost = is_lost || client::is_loss(status);
    gives_up_ = status == OFFPATH_OK || is_lost;
  }
  if (!gives_up_) return;
  if (giving_up_ != nullptr && offpath_op_test(giving_up_) == OFFPATH_IN_PROGRESS) return;
  offpath_op_free(std::exchange(giving_up_, nullptr));
  part_.take_over(client::journal_of(window_));
  state_ = State::at_home;
}

void Homecoming::forget_lost() {
  for (const int member : team_.lost_processes()) {
    if (is_lost_[static_cast<size_t>(member)]) continue;
    part_.forget(member);
    redoing_.forget(member);
    is_lost_[static_cast<size_t>(member)] = true;
  }
  for (auto& [id, asked] : asked_) {
    const bool never = asked.status == OFFPATH_IN_PROGRESS && is_lost_[static_cast<size_t>(asked.target)];
    if (never) asked.status = OFFPATH_ERR_PEER_LOST;
  }
}

// ---- operations

uint64_t Homecoming::over() {
  const uint64_t completed = offpath_window_completed(window_);
  if (!has_turned() && !client::may_have_kept(window_)) return completed;
  const Inside inside;
  std::lock_guard lock(mutex_);
  return collect() ? std::min(completed, redoing_.first()) : 0;
}

offpath_status_t Homecoming::outcome_of(uint64_t sequence, offpath_status_t status) {
  if (!client::is_loss(status)) return status;
  const Inside inside;
  std::lock_guard lock(mutex_);
  return collect() ? redoing_.outcome_of(sequence) : OFFPATH_IN_PROGRESS;
}

offpath_status_t Homecoming::take_failure(uint64_t through, bool may_ask) {
  if (!has_turned()) return OFFPATH_OK;
  std::lock_guard lock(mutex_);
  return redoing_.take_failure(through, may_ask);
}

bool Homecoming::is_full() {
  constexpr size_t kMost = 1 << 16;
  if (!has_turned()) return false;
  const Inside inside;
  std::lock_guard lock(mutex_);
  collect();
  return redoing_.count() >= kMost;
}

// ---- locks

offpath_status_t Homecoming::advance(LockWish& wish) {
  const Inside inside;
  std::lock_guard lock(mutex_);
  const auto target = static_cast<size_t>(wish.target);
  offpath_status_t status = OFFPATH_ERR_NOT_STARTED;
  if (state_ == State::at_services && wish.op != nullptr) status = offpath_op_test(wish.op);
  if (state_ == State::at_services && status == OFFPATH_IN_PROGRESS) return status;
  // Once it has said that it does not hold it, it does not, whatever the service says.
  offpath_op_free(std::exchange(wish.op, nullptr));
  if (client::is_loss(status)) {
    turn();
    if (wish.question == 0)
      wish.question = ask(wish.target, wish.exclusive ? Letter::Said::lock_exclusive : Letter::Said::lock_shared);
    status = answer_of(wish.question);
  }
  if (status == OFFPATH_OK) held_[target] = wish.exclusive ? Held::exclusive : Held::shared;
  return status;
}

uint64_t Homecoming::unlock(int target) {
  const Inside inside;
  std::lock_guard lock(mutex_);
  const uint64_t question = state_ == State::at_services ? 0 : ask(target, Letter::Said::unlock);
  held_[static_cast<size_t>(target)] = Held::nothing;
  return question;
}

uint64_t Homecoming::ask(int target, Letter::Said said) {
  say_holds();
  const uint64_t question = ++last_question_;
  const bool is_lost = is_lost_[static_cast<size_t>(target)];
  asked_[question] = {target, is_lost ? OFFPATH_ERR_PEER_LOST : OFFPATH_IN_PROGRESS};
  if (!is_lost) letters_.send(target, {.said = said, .id = question});
  return question;
}

offpath_status_t Homecoming::answer_of(uint64_t question) {
  const auto found = asked_.find(question);
  const offpath_status_t status = found == asked_.end() ? OFFPATH_ERR_INTERNAL : found->second.status;
  if (found != asked_.end() && status != OFFPATH_IN_PROGRESS) asked_.erase(found);
  return status;
}

offpath_status_t Homecoming::answer_to(uint64_t question) {
  std::lock_guard lock(mutex_);
  return answer_of(question);
}

// ---- the own part

bool Homecoming::attach(const void* base, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  return part_.attach(base, bytes);
}

bool Homecoming::detach(const void* base) {
  std::lock_guard lock(mutex_);
  return part_.detach(base);
}

bool Homecoming::is_home() {
  std::lock_guard lock(mutex_);
  return state_ == State::at_home;
}

// ---- the end

bool Homecoming::stay() {
  std::lock_guard lock(mutex_);
  stays_ = true;
  return state_ != State::at_services;
}

void Homecoming::turn_now() {
  const Inside inside;
  std::lock_guard lock(mutex_);
  turn();
}

bool Homecoming::has_heard_all() {
  const Inside inside;
  std::lock_guard lock(mutex_);
  for (size_t member = 0; member < has_told_.size(); ++member) {
    if (!has_told_[member] && !is_lost_[member]) return false;
  }
  return state_ == State::at_home && letters_.all_sent();
}

void Homecoming::close() {
  const Inside inside;
  std::lock_guard lock(mutex_);
  if (std::exchange(closed_, true)) return;
  if (has_turned()) offloader.look_often(false);
  offpath_op_free(std::exchange(giving_up_, nullptr));
  letters_.close();
}

}  // namespace offpath::mpi
