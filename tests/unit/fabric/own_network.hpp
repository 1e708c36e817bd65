// SPDX-License-Identifier: BSD-3-Clause
// A network of this process alone, with a loopback device: thousands of connections leave as many ports behind for a minute,
// which other programs of the machine would miss. Needs root.
#pragma once

#include "base/fd.hpp"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>

namespace offpath::testing {

inline bool set_loopback(bool up) {
  const base::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  strcpy(request.ifr_name, "lo");
  if (ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags = static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
  return ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

// Of the calling thread from now on. False: not permitted.
inline bool enter_own_network() { return unshare(CLONE_NEWNET) == 0 && set_loopback(true); }

}  // namespace offpath::testing
