// SPDX-License-Identifier: BSD-3-Clause
// A thread that does what it is given, in order, and sleeps otherwise: copies to a DPU and regions there block their
// caller, and the host has something else to do.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>

namespace minimd {

class Lane {
 public:
  Lane() : thread_([this] { serve(); }) {}
  ~Lane() {
    post({});
    thread_.join();
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void post(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    waiting_.push(std::move(work));
    changed_.notify_all();
  }
  bool idle() {
    const std::lock_guard lock(mutex_);
    return waiting_.empty();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_.empty(); });
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !waiting_.empty(); });
      const std::function<void()> work = waiting_.front();
      if (!work) return;
      lock.unlock();
      work();
      lock.lock();
      waiting_.pop();  // only now, so that nothing waiting means nothing under way
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<std::function<void()>> waiting_;
  std::thread thread_;
};

}  // namespace minimd
