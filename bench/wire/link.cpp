// SPDX-License-Identifier: BSD-3-Clause
#include "link.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace wire {
namespace {

constexpr std::size_t kLowWater = 256 << 10;
constexpr std::size_t kLongestSend = 1 << 20;
constexpr int kPatienceMs = 20000;

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string("the link does not work (") + what + ": " + strerror(errno) + ")");
}

sockaddr_in parse(const std::string& address) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  const std::size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  const unsigned long port = colon == std::string::npos ? 65536 : std::strtoul(&address[colon + 1], nullptr, 10);
  if (port > 65535 || inet_pton(AF_INET, host.c_str(), &out.sin_addr) != 1) {
    throw std::runtime_error("'" + address +
                             "' is no address (an IPv4 address and a port). Give one such as 10.0.0.1:0");
  }
  out.sin_port = htons(static_cast<std::uint16_t>(port));
  return out;
}

int open_socket() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) fail("socket");
  return socket;
}

}  // namespace

Link Link::listen(const std::string& address) {
  sockaddr_in at = parse(address);
  const int door = open_socket();
  socklen_t length = sizeof(at);
  if (bind(door, reinterpret_cast<sockaddr*>(&at), sizeof(at)) != 0 || ::listen(door, 1) != 0 ||
      getsockname(door, reinterpret_cast<sockaddr*>(&at), &length) != 0) {
    fail("listen");
  }
  std::printf("listening %d\n", ntohs(at.sin_port));
  std::fflush(stdout);
  const int socket = accept4(door, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket < 0) fail("accept");
  close(door);
  return Link(socket);
}

Link Link::connect(const std::string& address) {
  const sockaddr_in to = parse(address);
  const int socket = open_socket();
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) fail("connect");
  return Link(socket);
}

Link::Link(int socket) : socket_(socket), events_(epoll_create1(EPOLL_CLOEXEC)) {
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  epoll_event event{};
  event.events = EPOLLIN;
  if (events_ < 0 || epoll_ctl(events_, EPOLL_CTL_ADD, socket_, &event) != 0) fail("epoll");
}

Link::Link(Link&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      events_(std::exchange(other.events_, -1)),
      low_water_(other.low_water_),
      number_(other.number_),
      out_(std::move(other.out_)),
      in_(std::move(other.in_)) {}

Link::~Link() {
  if (socket_ >= 0) close(socket_);
  if (events_ >= 0) close(events_);
}

void Link::exchange(std::size_t bytes) {
  if (out_.size() < bytes) {
    out_.assign(bytes, 1);
    in_.assign(bytes, 0);
  }
  out_[0] = out_[bytes - 1] = ++number_;
  std::size_t sent = 0, received = 0;
  bool asks_for_room = false;
  while (sent < bytes || received < bytes) {
    bool moved = false;
    if (sent < bytes) {
      const ssize_t now = send(socket_, &out_[sent], std::min(bytes - sent, kLongestSend), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (now < 0 && errno != EAGAIN) fail("send");
      moved |= now > 0;
      sent += now > 0 ? static_cast<std::size_t>(now) : 0;
    }
    if (received < bytes) {
      const ssize_t now = recv(socket_, &in_[received], bytes - received, MSG_DONTWAIT);
      if (now == 0 || (now < 0 && errno != EAGAIN)) fail("recv");
      moved |= now > 0;
      received += now > 0 ? static_cast<std::size_t>(now) : 0;
    }
    if (moved) continue;
    const int low_water = static_cast<int>(std::max<std::size_t>(1, std::min(bytes - received, kLowWater)));
    if (low_water != low_water_) setsockopt(socket_, SOL_SOCKET, SO_RCVLOWAT, &low_water, sizeof(low_water));
    low_water_ = low_water;
    epoll_event event{};
    event.events = (received < bytes ? EPOLLIN : 0U) | (sent < bytes ? EPOLLOUT : 0U);
    if (asks_for_room != (sent < bytes) || received == bytes) epoll_ctl(events_, EPOLL_CTL_MOD, socket_, &event);
    asks_for_room = sent < bytes;
    if (epoll_wait(events_, &event, 1, kPatienceMs) == 0) throw std::runtime_error("the other side is silent");
  }
  epoll_event event{};
  event.events = EPOLLIN;
  if (asks_for_room) epoll_ctl(events_, EPOLL_CTL_MOD, socket_, &event);
  if (in_[0] != number_ || in_[bytes - 1] != number_) throw std::runtime_error("another block has come than was sent");
}

void Link::meet() { exchange(1); }

void Link::tell(std::uint64_t number) {
  if (send(socket_, &number, sizeof(number), MSG_NOSIGNAL) != sizeof(number)) fail("send");
}

std::uint64_t Link::hear() {
  std::uint64_t number = 0;
  if (recv(socket_, &number, sizeof(number), MSG_WAITALL) != sizeof(number)) fail("recv");
  return number;
}

}  // namespace wire
