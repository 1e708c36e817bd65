// SPDX-License-Identifier: BSD-3-Clause
// Bytes on a Unix socket, with descriptors that come along (SCM_RIGHTS). What a signal interrupts goes on; a socket that the
// other side has closed raises none.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>

namespace offpath::base {

inline constexpr size_t kMostPassed = 4;

// As sendmsg: how many bytes went, or -1 and errno.
ssize_t send_passing(int socket, std::span<const iovec> parts, std::span<const int> descriptors);

struct Received {
  ssize_t bytes = -1;  // 0: closed; -1: see errno
  int flags = 0;       // MSG_TRUNC: the message was longer; MSG_CTRUNC: not all of its descriptors could be taken
};
// As recvmsg. Descriptors for which there is no place in `passed` are closed.
Received receive_passing(int socket, void* data, size_t bytes, std::span<Fd> passed, int flags = 0);
// Where MSG_CTRUNC is among the flags.
Status no_descriptor_left();

}  // namespace offpath::base
