// SPDX-License-Identifier: BSD-3-Clause
// Frames on a channel's socket, both ends. A socket is read by one thread at a time and written under the owner's lock.
#pragma once

#include "base/fd.hpp"
#include "device/command.hpp"

#include <array>
#include <span>

struct iovec;

namespace offpath::device {

class FrameReader {
 public:
  explicit FrameReader(int socket) : socket_(socket) {}
  // Blocks until all bytes are there. OFFPATH_ERR_SERVICE_LOST: the other side closed.
  base::Status read(void* out, size_t bytes);
  base::Result<FrameHeader> header();

 private:
  int socket_;
  size_t begin_ = 0;
  size_t end_ = 0;
  std::array<uint8_t, 8192> buffer_;  // small reads share a system call; long ones pass it by
};

// Header, body and what follows it, with as few system calls as possible; never raises SIGPIPE.
base::Status send_frame(int socket, const FrameHeader& header, std::span<const uint8_t> body,
                        std::span<const iovec> more = {});
base::Status send_command(int socket, const Command& command, std::span<const iovec> more = {});

// The first frame: the executor's description and, on a segment channel, the segment.
base::Status send_hello(int socket, const Description& description, int segment);
struct Hello {
  Description description;
  base::Fd segment;
};
base::Result<Hello> receive_hello(int socket, int timeout_ms);

// All bytes within the time, or an error; for exchanges of fixed length before there are frames.
base::Status receive_exactly(int socket, void* out, size_t bytes, int timeout_ms, base::Fd* passed = nullptr);
base::Status send_all(int socket, std::span<const iovec> parts, int fd_to_pass = -1);

}  // namespace offpath::device
