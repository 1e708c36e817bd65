// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/multicast/socket.hpp"

#include <net/if.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace offpath::fabric::multicast {
namespace {

constexpr size_t kIpAndUdpBytes = 28;
constexpr int kUsualBufferBytes = 8 << 20;
constexpr size_t kMostSegments = 64;  // of one call, in any kernel that can cut
constexpr size_t kMostMessages = 64;

bool set(int socket, int level, int name, int value) {
  return setsockopt(socket, level, name, &value, sizeof(value)) == 0;
}

// Nothing to wait for: the datagram is lost, as it may be anywhere.
bool is_full(int number) { return number == EAGAIN || number == EWOULDBLOCK || number == EINTR; }
// This kernel or device cannot cut.
bool is_no_segmentation(int number) {
  return number == EIO || number == EINVAL || number == EOPNOTSUPP || number == ENOPROTOOPT;
}

}  // namespace

sockaddr_in address_of(const GroupId& group) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  // 239.192.0.0/14 stays inside of an organisation (RFC 2365). Ports below those that systems give away.
  address.sin_addr.s_addr = htonl(0xefc00000u | (group[0] & 3u) << 16 | uint32_t{group[1]} << 8 | group[2]);
  address.sin_port = htons(static_cast<uint16_t>(20000 + ((group[3] << 8 | group[4]) & 0x1fff)));
  return address;
}

base::Result<Socket> Socket::join(const GroupId& group, const SocketOptions& options) {
  Socket out;
  const auto refused = [&](const char* what) {
    return base::Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot %s on device '%.30s' (for multicast)",
                                      what, options.device.c_str());
  };
  out.fd_ = base::Fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int fd = out.fd_.get();
  if (fd < 0) return refused("make a socket");
  const sockaddr_in address = address_of(group);
  ip_mreqn member{address.sin_addr, {}, static_cast<int>(if_nametoindex(options.device.c_str()))};
  if (member.imr_ifindex == 0) return refused("find addresses");
  ifreq request{};
  strncpy(request.ifr_name, options.device.c_str(), IFNAMSIZ - 1);
  if (ioctl(fd, SIOCGIFMTU, &request) != 0) return refused("ask for the MTU");
  if (request.ifr_mtu < static_cast<int>(kIpAndUdpBytes + kAroundBytes + 64)) return refused("send so short packets");
  out.datagram_bytes_ = std::min(static_cast<size_t>(request.ifr_mtu) - kIpAndUdpBytes, kMaxDatagramBytes);
  // Of this group only: not what comes for the same port, or to groups that others of this machine have joined.
  set(fd, SOL_SOCKET, SO_REUSEADDR, 1);  // other services here, and other groups with the same address
  set(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return refused("listen");
  if (setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof(member)) != 0) return refused("join a group");
  if (setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &member, sizeof(member)) != 0) return refused("send to a group");
  set(fd, IPPROTO_IP, IP_MULTICAST_LOOP, 0);  // there is one of us in a network
  set(fd, IPPROTO_IP, IP_MULTICAST_TTL, options.hops);
  set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);  // a fragment lost would be a datagram lost
  set(fd, SOL_SOCKET, SO_RCVBUF, options.receive_buffer_bytes > 0 ? options.receive_buffer_bytes : kUsualBufferBytes);
  set(fd, IPPROTO_UDP, UDP_GRO, 1);  // without it datagrams come one by one
  out.segments_ = options.segments;
  out.address_ = address;  // not connected: a socket that is hears nobody else
  return out;
}

size_t Socket::send(Bytes datagrams, size_t each) {
  size_t sent = 0;
  while (sent < datagrams.size()) {
    const Bytes rest = datagrams.subspan(sent);
    const size_t more = segments_ && rest.size() > each ? send_segmented(rest, each) : send_each(rest, each);
    if (more == 0) break;
    sent += more;
  }
  return sent;
}

size_t Socket::send_segmented(Bytes datagrams, size_t each) {
  const size_t most = std::max<size_t>(1, std::min(kMostSegments, kMaxDatagramBytes / each));
  iovec part{const_cast<uint8_t*>(datagrams.data()), std::min(datagrams.size(), most * each)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(uint16_t))] = {};
  msghdr message{};
  message.msg_name = &address_;
  message.msg_namelen = sizeof(address_);
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = IPPROTO_UDP;
  header->cmsg_type = UDP_SEGMENT;
  header->cmsg_len = CMSG_LEN(sizeof(uint16_t));
  const auto length = static_cast<uint16_t>(each);
  memcpy(CMSG_DATA(header), &length, sizeof(length));
  if (sendmsg(fd_.get(), &message, MSG_NOSIGNAL) >= 0) return part.iov_len;
  if (is_full(errno)) return 0;
  if (!is_no_segmentation(errno)) return part.iov_len;
  segments_ = false;
  return send_each(datagrams, each);
}

size_t Socket::send_each(Bytes datagrams, size_t each) {
  std::array<mmsghdr, kMostMessages> messages{};
  std::array<iovec, kMostMessages> parts;
  size_t count = 0, bytes = 0;
  for (; count < kMostMessages && bytes < datagrams.size(); ++count) {
    const size_t length = std::min(each, datagrams.size() - bytes);
    parts[count] = {const_cast<uint8_t*>(datagrams.data()) + bytes, length};
    messages[count].msg_hdr.msg_name = &address_;
    messages[count].msg_hdr.msg_namelen = sizeof(address_);
    messages[count].msg_hdr.msg_iov = &parts[count];
    messages[count].msg_hdr.msg_iovlen = 1;
    bytes += length;
  }
  const int sent = sendmmsg(fd_.get(), messages.data(), static_cast<unsigned>(count), MSG_NOSIGNAL);
  if (sent > 0) return std::min(static_cast<size_t>(sent) * each, bytes);
  return is_full(errno) ? 0 : std::min(each, bytes);  // the first one is lost
}

size_t Socket::receive_into(std::span<uint8_t* const> buffers, std::array<Filled, kMostBuffers>& filled) {
  struct alignas(cmsghdr) Control {
    char bytes[CMSG_SPACE(sizeof(int))];
  };
  std::array<mmsghdr, kMostBuffers> messages{};
  std::array<iovec, kMostBuffers> parts;
  std::array<Control, kMostBuffers> controls;
  for (size_t i = 0; i < buffers.size(); ++i) {
    parts[i] = {buffers[i], kMaxDatagramBytes};
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
    messages[i].msg_hdr.msg_control = controls[i].bytes;
    messages[i].msg_hdr.msg_controllen = sizeof(controls[i].bytes);
  }
  const int count = recvmmsg(fd_.get(), messages.data(), static_cast<unsigned>(buffers.size()), 0, nullptr);
  for (int i = 0; i < count; ++i) {
    msghdr& message = messages[static_cast<size_t>(i)].msg_hdr;
    Filled& out = filled[static_cast<size_t>(i)];
    out.bytes = out.each = messages[static_cast<size_t>(i)].msg_len;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != IPPROTO_UDP || header->cmsg_type != UDP_GRO) continue;
      int each = 0;
      memcpy(&each, CMSG_DATA(header), sizeof(each));
      if (each > 0) out.each = static_cast<size_t>(each);
    }
  }
  return count > 0 ? static_cast<size_t>(count) : 0;
}

}  // namespace offpath::fabric::multicast
