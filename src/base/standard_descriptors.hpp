// SPDX-License-Identifier: BSD-3-Clause
// While it lives, those of the descriptors 0 to 2 that the program has closed are taken: nothing that is opened meanwhile
// gets their numbers, to which somebody may write. One at a time in a process.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace offpath::base {

class StandardDescriptors {
 public:
  StandardDescriptors() {
    int next = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (; next >= 0 && next <= STDERR_FILENO; next = open("/dev/null", O_RDWR | O_CLOEXEC)) taken_[next] = true;
    if (next >= 0) close(next);
  }
  StandardDescriptors(const StandardDescriptors&) = delete;
  StandardDescriptors& operator=(const StandardDescriptors&) = delete;
  ~StandardDescriptors() {
    for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
      if (taken_[fd]) close(fd);
    }
  }

 private:
  bool taken_[STDERR_FILENO + 1] = {};
};

}  // namespace offpath::base
