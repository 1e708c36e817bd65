// SPDX-License-Identifier: BSD-3-Clause
// Line: a connected socket on which bytes are sent and received whole: as they are inside a machine, sealed in records
// between machines. A record is its length, a tag, the bytes, a tag; nothing of it is used before its tag was checked.
//
// A handle: copies are the same line, the socket is its owner's. One thread receives at a time, one sends.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "seal/handshake.hpp"

#include <array>
#include <memory>
#include <span>

struct iovec;

namespace offpath::device {

class Line {
 public:
  static constexpr int kForever = -1;

  // As they are.
  Line(int socket) : socket_(socket) {}  // NOLINT(google-explicit-constructor): each socket is one
  Line(int socket, const seal::Session& session, seal::Security security);

  int socket() const { return socket_; }
  // All of them, with as few system calls as possible; never raises SIGPIPE. OFFPATH_ERR_SERVICE_LOST: the other side
  // closed. A descriptor can go with what is not sealed.
  base::Status send(std::span<const iovec> parts, int fd_to_pass = -1) const;
  // All bytes within the time, or an error. OFFPATH_ERR_PERMISSION: they were changed on their way.
  base::Status receive(void* out, size_t bytes, int timeout_ms, base::Fd* passed = nullptr) const;
  // At least one byte, what is there; blocks.
  base::Result<size_t> receive_some(void* out, size_t bytes) const;

 private:
  struct Sealed;
  int socket_;
  std::shared_ptr<Sealed> sealed_;
};

// A connection's keys as its executor is given them.
inline constexpr size_t kSessionBytes = 2 * sizeof(seal::Key) + 2;
std::array<uint8_t, kSessionBytes> encode_session(const seal::Session& session, seal::Security security);
Line decode_line(int socket, std::span<const uint8_t, kSessionBytes> session);

// A line and its socket.
struct Connection {
  Connection(base::Fd socket_of) : socket(std::move(socket_of)), line(socket.get()) {}  // NOLINT: plain ones
  Connection(base::Fd socket_of, const seal::Session& session, seal::Security security)
      : socket(std::move(socket_of)), line(socket.get(), session, security) {}
  base::Fd socket;
  Line line;
};

}  // namespace offpath::device
