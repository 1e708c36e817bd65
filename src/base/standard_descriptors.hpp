// SPDX-License-Identifier: BSD-3-Clause
// While it lives, those of the descriptors 0 to 2 that the program has closed are taken: nothing that is opened meanwhile
// gets their numbers, to which somebody may write. Of several at a time the last one gives them back.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <mutex>
#include <utility>

namespace offpath::base {

class StandardDescriptors {
 public:
  StandardDescriptors() {
    const std::lock_guard lock(mutex_);
    ++users_;
    int next = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (; next >= 0 && next <= STDERR_FILENO; next = open("/dev/null", O_RDWR | O_CLOEXEC)) taken_[next] = true;
    if (next >= 0) close(next);
  }
  StandardDescriptors(const StandardDescriptors&) = delete;
  StandardDescriptors& operator=(const StandardDescriptors&) = delete;
  ~StandardDescriptors() {
    const std::lock_guard lock(mutex_);
    if (--users_ > 0) return;
    for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
      if (std::exchange(taken_[fd], false)) close(fd);
    }
  }

 private:
  static inline std::mutex mutex_;
  static inline int users_ = 0;
  static inline bool taken_[STDERR_FILENO + 1] = {};
};

}  // namespace offpath::base
