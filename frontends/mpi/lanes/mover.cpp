// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lanes/mover.hpp"

#include "base/quiet_thread.hpp"
#include "mpi/job/job.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/native.hpp"

#include <algorithm>
#include <chrono>
#include <exception>

namespace offpath::mpi {

namespace {

using std::chrono::microseconds;
constexpr microseconds kHeldBack{500};  // most programs wait for what they post, and that moves it, too
constexpr microseconds kUnderWay{Offloader::kLookNs / 1000};
constexpr microseconds kQuiet{100'000};  // others may still be at what has ended here

microseconds nap() {
  if (offloader.holds_back() || offloader.looks_often()) return kHeldBack;
  return offloader.needs_attention() ? kUnderWay : kQuiet;
}

void move() {
  const Meeting::Left meeting;
  if (Inside::here() && !meeting.was_here()) return;  // a native call of ours
  try {
    offloader.progress();
  } catch (const std::exception&) {
    // Without memory: the next round tries again.
  }
}

int move_in_round() {
  if (offloader.holds_back() || offloader.look_is_due()) move();
  return 0;
}

}  // namespace

void move_native() {
  const Inside inside;
  int found = 0;
  const int code = native.Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, job.control(), &found, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) acknowledge_loss(job.control());
}

int Mover::thread_level(int required) {
  return native.call_in_rounds != nullptr ? required : std::max<int>(required, MPI_THREAD_MULTIPLE);
}

bool Mover::start(int granted) {
  if (native.call_in_rounds != nullptr) {
    in_rounds_ = native.call_in_rounds(&move_in_round) == 0;
    return in_rounds_;
  }
  if (granted < MPI_THREAD_MULTIPLE) return false;
  try {
    thread_ = base::quiet_thread([this] { run(); });
  } catch (const std::exception&) {  // the system has no thread left
    return false;
  }
  return true;
}

void Mover::stop() {
  if (in_rounds_) native.call_no_more(&move_in_round);
  in_rounds_ = false;
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    woken_.notify_one();
  }
  thread_.join();
}

void Mover::wake() {
  std::lock_guard lock(mutex_);
  woken_.notify_one();
}

void Mover::run() {
  pthread_setname_np(pthread_self(), "offpath-mover");
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!offloader.in_use() && !offloader.holds_back()) {
      woken_.wait(lock);
      continue;
    }
    // Whoever wakes it has begun to hold something back, which takes a nap of that kind.
    if (woken_.wait_for(lock, nap()) == std::cv_status::no_timeout) continue;
    lock.unlock();
    move();
    lock.lock();
  }
}

}  // namespace offpath::mpi
