// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/proxy/progress.hpp"

#include "base/quiet_thread.hpp"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>

namespace offpath::mpi::regions {
namespace {

// The timer's slack comes on top.
constexpr std::chrono::microseconds kFirstNap{2}, kLongestNap{50};

}  // namespace

void Progress::add(std::unique_ptr<Task> task) {
  auto shared = std::make_shared<std::unique_ptr<Task>>(std::move(task));
  post([this, shared] { adopt(std::move(*shared)); });
}

void Progress::post(std::function<void()> function) {
  std::lock_guard lock(mutex_);
  if (stopped_) return;
  posted_.push_back(std::move(function));
  if (!thread_.joinable()) thread_ = base::quiet_thread([this] { run(); });
  wake_.notify_one();
}

void Progress::lose(uint64_t channel) {
  post([this, channel] {
    for (const auto& task : tasks_) task->lose(channel);
  });
}

void Progress::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    stopped_ = !thread_.joinable();
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void Progress::take_new(bool idle, std::chrono::microseconds nap) {
  std::vector<std::function<void()>> fresh;
  {
    std::unique_lock lock(mutex_);
    const auto awake = [this] { return !posted_.empty() || stopping_; };
    if (idle)
      wake_.wait(lock, awake);
    else if (nap.count() > 0)
      wake_.wait_for(lock, nap, awake);
    fresh.swap(posted_);
  }
  for (const auto& function : fresh) function();
}

bool Progress::advance_all() {
  bool moved = false;
  for (size_t i = 0; i < tasks_.size();) {
    if (!tasks_[i]->advance()) {
      ++i;
      continue;
    }
    // In order: what was asked first is looked at first.
    tasks_.erase(tasks_.begin() + static_cast<std::ptrdiff_t>(i));
    moved = true;
  }
  return moved;
}

void Progress::run() {
  pthread_setname_np(pthread_self(), "offpath-mpi");
  prctl(PR_SET_TIMERSLACK, 1000);  // ns; naps are short
  std::chrono::microseconds nap{0};
  for (;;) {
    take_new(tasks_.empty(), nap);
    {
      std::lock_guard lock(mutex_);
      if (stopping_ && posted_.empty()) {
        stopped_ = true;
        break;
      }
    }
    nap = advance_all() ? std::chrono::microseconds{0} : std::clamp(2 * nap, kFirstNap, kLongestNap);
  }
  for (const auto& task : tasks_) task->give_up();
  tasks_.clear();
}

}  // namespace offpath::mpi::regions
