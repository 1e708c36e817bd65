// SPDX-License-Identifier: BSD-3-Clause
#include "client/submitter.hpp"

#include "base/quiet_thread.hpp"
#include "client/session.hpp"

#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>

namespace offpath::client {

namespace {
constexpr uint64_t kNapNs = 1000000000;               // then it looks whether the service lives
constexpr std::chrono::microseconds kForOthers{100};  // for operations that end one after the other
}  // namespace

Submitter::~Submitter() {
  {
    std::lock_guard lock(session_.mutex);
    stopping_ = true;
    more_.notify_all();
    session_.wake_sleepers();
  }
  if (thread_.joinable()) thread_.join();
}

void Submitter::wake() {
  if (thread_.joinable()) return more_.notify_one();
  try {
    thread_ = base::quiet_thread([this] { run(); });
  } catch (const std::exception&) {  // the system has no thread left
  }
}

void Submitter::run() {
  std::unique_lock lock(session_.mutex);
  while (!stopping_) {
    if (session_.queue.empty() || session_.life.lost) {
      more_.wait(lock);
      continue;
    }
    const uint32_t seen = offpath_session_events(&session_);
    session_.drain_queue();
    if (session_.queue.empty()) continue;
    lock.unlock();
    offpath_session_sleep(&session_, seen, kNapNs);
    std::this_thread::sleep_for(kForOthers);
    lock.lock();
  }
}

}  // namespace offpath::client
