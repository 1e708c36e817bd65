// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tcp/sockets.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>

namespace offpath::fabric::tcp {
namespace {

using base::Fd;
using base::Result;
using base::Status;

void set(int socket, int level, int option, int value) { setsockopt(socket, level, option, &value, sizeof(value)); }

// Before connecting and listening: the windows follow from them.
void set_buffers(int socket, const SocketOptions& options) {
  if (options.send_buffer_bytes > 0) set(socket, SOL_SOCKET, SO_SNDBUF, options.send_buffer_bytes);
  if (options.receive_buffer_bytes > 0) set(socket, SOL_SOCKET, SO_RCVBUF, options.receive_buffer_bytes);
}

void set_connection(int socket, const SocketOptions& options) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, options.idle_seconds);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, options.probe_seconds);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, options.probes);
}

Fd open_socket(const Place& place) {
  return Fd(socket(place.is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool is_named(const std::string& devices, const char* name) {
  for (size_t begin = 0; begin <= devices.size();) {
    const size_t end = std::min(devices.find(',', begin), devices.size());
    const std::string word = devices.substr(begin, end - begin);
    if (word.substr(0, word.find(':')) == name) return true;
    begin = end + 1;
  }
  return false;
}

// Nothing: no IP address, or one that others on the network cannot reach by the address alone.
std::optional<Place> place_of(const ifaddrs& entry) {
  Place place;
  const auto count_bits = [&](const uint8_t* mask, size_t bytes) {
    int bits = 0;
    for (size_t i = 0; i < bytes; ++i) bits += std::popcount(mask[i]);
    place.network_bits = static_cast<uint8_t>(bits);
  };
  if (entry.ifa_addr == nullptr || entry.ifa_netmask == nullptr) return std::nullopt;
  if (entry.ifa_addr->sa_family == AF_INET) {
    memcpy(place.ip.data(), &reinterpret_cast<const sockaddr_in*>(entry.ifa_addr)->sin_addr, 4);
    count_bits(reinterpret_cast<const uint8_t*>(&reinterpret_cast<const sockaddr_in*>(entry.ifa_netmask)->sin_addr), 4);
    return place;
  }
  if (entry.ifa_addr->sa_family != AF_INET6) return std::nullopt;
  const auto& v6 = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr;
  if (IN6_IS_ADDR_LINKLOCAL(&v6)) return std::nullopt;
  place.is_v6 = true;
  memcpy(place.ip.data(), &v6, 16);
  count_bits(reinterpret_cast<const uint8_t*>(&reinterpret_cast<const sockaddr_in6*>(entry.ifa_netmask)->sin6_addr),
             16);
  return place;
}

}  // namespace

std::string multicast_device(const std::string& devices) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(list, freeifaddrs);
  const bool all = devices.empty() || devices == "all";
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const bool can = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_MULTICAST) != 0 &&
                     (entry->ifa_flags & IFF_LOOPBACK) == 0;
    const bool wanted = all || is_named(devices, entry->ifa_name);
    if (can && wanted && entry->ifa_addr != nullptr && entry->ifa_addr->sa_family == AF_INET) return entry->ifa_name;
  }
  return {};
}

Result<std::vector<Place>> own_places(const std::string& devices) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot list the network devices");
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(list, freeifaddrs);
  const bool all = devices.empty() || devices == "all";
  std::vector<Place> places, inside;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_UP) == 0 || (!all && !is_named(devices, entry->ifa_name))) continue;
    const auto place = place_of(*entry);
    if (!place) continue;
    (all && (entry->ifa_flags & IFF_LOOPBACK) != 0 ? inside : places).push_back(*place);
  }
  if (places.empty()) places = inside;
  if (places.empty()) {
    return Status::error(OFFPATH_ERR_NO_SERVICE,
                         "no network device '%.60s' with an IP address is up (services need one to reach each other). "
                         "Correct OFFPATH_UCX_NET_DEVICES, or leave it out",
                         all ? "at all" : devices.c_str());
  }
  if (places.size() > kMaxPlaces) places.resize(kMaxPlaces);
  return places;
}

Result<Fd> listen_at(Place& place, const SocketOptions& options) {
  Fd socket = open_socket(place);
  if (place.is_v6 && socket.valid()) set(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  set(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);  // ports of connections that have ended lately are free, too
  set_buffers(socket.get(), options);
  sockaddr_storage address;
  place.port = 0;
  socklen_t bytes = to_socket_address(place, address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (!socket.valid() || bind(socket.get(), generic, bytes) != 0 || listen(socket.get(), options.backlog) != 0 ||
      getsockname(socket.get(), generic, &bytes) != 0) {
    return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot listen for other services");
  }
  place.port = ntohs(place.is_v6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                 : reinterpret_cast<sockaddr_in&>(address).sin_port);
  return socket;
}

Fd accept_from(int listening, const SocketOptions& options) {
  int accepted = -1;
  do {
    accepted = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  } while (accepted < 0 && (errno == EINTR || errno == ECONNABORTED || errno == EPROTO));
  if (accepted >= 0) set_connection(accepted, options);
  if (accepted >= 0) set_buffers(accepted, options);
  return Fd(accepted);
}

Fd begin_connect(const Place& place, const SocketOptions& options) {
  Fd socket = open_socket(place);
  if (!socket.valid()) return socket;
  set_connection(socket.get(), options);
  set_buffers(socket.get(), options);
  sockaddr_storage address;
  const socklen_t bytes = to_socket_address(place, address);
  const int result = connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), bytes);
  if (result != 0 && errno != EINPROGRESS) {
    const int number = errno;
    socket.reset();
    errno = number;
  }
  return socket;
}

std::optional<Counted> counts_of(int socket) {
  tcp_info info{};  // an older kernel fills a part of it
  socklen_t bytes = sizeof(info);
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return std::nullopt;
  return Counted{{.sent = info.tcpi_data_segs_out,
                  .resent = info.tcpi_total_retrans,
                  .disordered = info.tcpi_rcv_ooopack,
                  .busy_us = info.tcpi_busy_time,
                  .room_us = info.tcpi_rwnd_limited,
                  .round_us = info.tcpi_rtt},
                 info.tcpi_unacked > 0 || info.tcpi_notsent_bytes > 0};
}

int connect_error(int socket) {
  int number = ENOTCONN;
  socklen_t bytes = sizeof(number);
  getsockopt(socket, SOL_SOCKET, SO_ERROR, &number, &bytes);
  return number;
}

bool send_words(int socket, Bytes words) {
  return words.empty() ||
         ::send(socket, words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(words.size());
}

}  // namespace offpath::fabric::tcp
