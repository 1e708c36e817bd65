// SPDX-License-Identifier: BSD-3-Clause
#include "base/passing.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace offpath::base {

namespace {

// Room for so many descriptors and not one more: one that is taken and not looked at would stay open.
struct Control {
  explicit Control(size_t asked) : descriptors(std::min(asked, kMostPassed)) {}
  void lend_to(msghdr& message) {
    if (descriptors == 0) return;
    message.msg_control = room;
    message.msg_controllen = CMSG_LEN(descriptors * sizeof(int));
  }

  size_t descriptors;
  alignas(cmsghdr) char room[CMSG_SPACE(kMostPassed * sizeof(int))] = {};
};

}  // namespace

ssize_t send_passing(int socket, std::span<const iovec> parts, std::span<const int> descriptors) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  Control control(descriptors.size());
  control.lend_to(message);
  if (cmsghdr* const header = CMSG_FIRSTHDR(&message); header != nullptr) {
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = message.msg_controllen;
    memcpy(CMSG_DATA(header), descriptors.data(), control.descriptors * sizeof(int));
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

Received receive_passing(int socket, void* data, size_t bytes, std::span<Fd> passed, int flags) {
  iovec part{data, bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Control control(passed.size());
  control.lend_to(message);
  ssize_t got;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return {};
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < std::min(count, passed.size()); ++i) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      passed[i] = Fd(fd);
    }
  }
  return {got, message.msg_flags};
}

Status no_descriptor_left() {
  return Status::error(OFFPATH_ERR_NO_SERVICE,
                       "no file descriptor is left for what came along. Raise 'ulimit -n' (the hard limit, too)");
}

}  // namespace offpath::base
