// SPDX-License-Identifier: BSD-3-Clause
// Link: two processes that exchange bytes as cheaply as a kernel lets them: one connection, sent straight from their own
// memory and received straight into it, asleep until there is a good part of what is missing. No service can be
// cheaper on a wire of sockets. All functions throw std::runtime_error with one line for the user.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace wire {

class Link {
 public:
  // `address`: IPv4, with :PORT. Who listens says so on stdout, with the port it got ("listening PORT").
  static Link listen(const std::string& address);
  static Link connect(const std::string& address);
  Link(Link&& other) noexcept;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  Link& operator=(Link&&) = delete;
  ~Link();

  // Both sides send and receive so many bytes at once.
  void exchange(std::size_t bytes);
  // Both sides get there before either goes on.
  void meet();
  // What the one who tells tells.
  void tell(std::uint64_t number);
  std::uint64_t hear();

 private:
  explicit Link(int socket);
  int socket_ = -1, events_ = -1;
  int low_water_ = 1;
  std::uint8_t number_ = 0;  // of the exchange, in the first and the last byte of its block
  std::vector<std::uint8_t> out_, in_;
};

}  // namespace wire
