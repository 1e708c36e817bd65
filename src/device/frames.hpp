// SPDX-License-Identifier: BSD-3-Clause
// Frames on a channel's line, both ends. A line is read by one thread at a time and written under the owner's lock.
#pragma once

#include "device/command.hpp"
#include "device/line.hpp"

#include <array>
#include <span>

struct iovec;

namespace offpath::device {

class FrameReader {
 public:
  explicit FrameReader(Line line) : line_(std::move(line)) {}
  // Blocks until all bytes are there. OFFPATH_ERR_SERVICE_LOST: the other side closed.
  base::Status read(void* out, size_t bytes);
  base::Result<FrameHeader> header();

 private:
  Line line_;
  size_t begin_ = 0;
  size_t end_ = 0;
  std::array<uint8_t, 8192> buffer_;  // small reads share a system call; long ones pass it by
};

// Header, body and what follows it.
base::Status send_frame(const Line& line, const FrameHeader& header, std::span<const uint8_t> body,
                        std::span<const iovec> more = {});
base::Status send_command(const Line& line, const Command& command, std::span<const iovec> more = {});

// The first frame: the executor's description and, on a segment channel, the segment.
base::Status send_hello(const Line& line, const Description& description, int segment);
struct Hello {
  Description description;
  base::Fd segment;
};
base::Result<Hello> receive_hello(const Line& line, int timeout_ms);

}  // namespace offpath::device
