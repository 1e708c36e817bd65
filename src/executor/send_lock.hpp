// SPDX-License-Identifier: BSD-3-Clause
// The right to write a frame to a socket. A signal handler may ask for it, too.
#pragma once

#include <atomic>
#include <ctime>
#include <mutex>

namespace offpath::executor {

class SendLock {
 public:
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  // For last words: whoever holds it may be the thread that crashed, so this ends after a second at the latest.
  void lock_for_last_words() {
    const timespec pause{0, 10'000'000};
    for (int i = 0; i < 100 && !mutex_.try_lock(); ++i) nanosleep(&pause, nullptr);
  }

 private:
  std::mutex mutex_;
};

}  // namespace offpath::executor
