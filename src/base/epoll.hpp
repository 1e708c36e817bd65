// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/epoll.h>

#include <cstdint>

namespace offpath::base {

// From now on `epoll` says, by the tag, when there is something to read.
inline void watch(int epoll, int fd, uint64_t tag) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = tag;
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace offpath::base
