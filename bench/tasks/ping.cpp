// SPDX-License-Identifier: BSD-3-Clause
#include "ping.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

#include "../../apps/kit/clocks.hpp"

namespace bench {
namespace {

constexpr int kBytes = 64;  // as short as what a task says

bool pass(int socket, char* bytes, bool out) {
  for (int at = 0; at < kBytes;) {
    const ssize_t moved = out ? send(socket, bytes + at, static_cast<size_t>(kBytes - at), MSG_NOSIGNAL)
                              : recv(socket, bytes + at, static_cast<size_t>(kBytes - at), 0);
    if (moved <= 0) return false;
    at += static_cast<int>(moved);
  }
  return true;
}

void leave_at_once(int socket) {
  const int one = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

}  // namespace

int serve_pings(int port) {
  const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 || listen(listening, 1) != 0) {
    fprintf(stderr, "bench tasks: cannot listen on port %d\n", port);
    return 1;
  }
  puts("listening");
  fflush(stdout);
  const int connection = accept(listening, nullptr, nullptr);
  leave_at_once(connection);
  char bytes[kBytes];
  while (pass(connection, bytes, false) && pass(connection, bytes, true)) {
  }
  return 0;
}

Ping::~Ping() {
  if (socket_ >= 0) close(socket_);
}

bool Ping::open(const std::string& where) {
  const size_t colon = where.rfind(':');
  if (colon == std::string::npos) return false;
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(where.substr(0, colon).c_str(), where.substr(colon + 1).c_str(), &hints, &found) != 0) return false;
  socket_ = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected = connect(socket_, found->ai_addr, found->ai_addrlen) == 0;
  freeaddrinfo(found);
  leave_at_once(socket_);
  return connected;
}

double Ping::once() const {
  const std::int64_t begin = kit::now_ns();
  char bytes[kBytes] = {};
  if (!pass(socket_, bytes, true) || !pass(socket_, bytes, false)) return -1;
  return 1e-3 * static_cast<double>(kit::now_ns() - begin);
}

}  // namespace bench
