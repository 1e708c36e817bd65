// SPDX-License-Identifier: BSD-3-Clause
#include "device/frames.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace offpath::device {

using base::Result;
using base::Status;

Status FrameReader::read(void* out, size_t bytes) {
  auto* to = static_cast<uint8_t*>(out);
  while (bytes > 0) {
    if (begin_ < end_) {
      const size_t part = std::min(bytes, end_ - begin_);
      memcpy(to, buffer_.data() + begin_, part);
      begin_ += part;
      to += part;
      bytes -= part;
      continue;
    }
    const bool direct = bytes >= buffer_.size();
    const auto got = line_.receive_some(direct ? to : buffer_.data(), direct ? bytes : buffer_.size());
    if (!got.ok()) return got.status();
    if (direct) {
      to += got.value();
      bytes -= got.value();
    } else {
      begin_ = 0;
      end_ = got.value();
    }
  }
  return {};
}

Result<FrameHeader> FrameReader::header() {
  std::array<uint8_t, kFrameHeaderBytes> bytes;
  if (const Status status = read(bytes.data(), bytes.size()); !status.ok()) return status;
  return decode_header(bytes);
}

Status send_frame(const Line& line, const FrameHeader& header, std::span<const uint8_t> body,
                  std::span<const iovec> more) {
  std::array<uint8_t, kFrameHeaderBytes> head;
  encode_header(header, head);
  std::vector<iovec> parts{{head.data(), head.size()}};
  if (!body.empty()) parts.push_back({const_cast<uint8_t*>(body.data()), body.size()});
  parts.insert(parts.end(), more.begin(), more.end());
  return line.send(parts);
}

Status send_command(const Line& line, const Command& command, std::span<const iovec> more) {
  std::array<uint8_t, Command::kBytes> body;
  encode(command, body);
  return send_frame(line, {command.kind, Command::kBytes, command.id}, body, more);
}

Status send_hello(const Line& line, const Description& description, int segment) {
  std::array<uint8_t, kFrameHeaderBytes> head;
  std::array<uint8_t, Description::kBytes> body;
  encode_header({Kind::hello, Description::kBytes, 0}, head);
  encode(description, body);
  const iovec parts[] = {{head.data(), head.size()}, {body.data(), body.size()}};
  return line.send(parts, segment);
}

Result<Hello> receive_hello(const Line& line, int timeout_ms) {
  std::array<uint8_t, kFrameHeaderBytes + Description::kBytes> bytes;
  Hello hello;
  const Status status = line.receive(bytes.data(), bytes.size(), timeout_ms, &hello.segment);
  if (!status.ok()) return status;
  const auto header = decode_header(std::span(bytes).first<kFrameHeaderBytes>());
  if (!header.ok()) return header.status();
  if (header->kind != Kind::hello || header->body_bytes != Description::kBytes) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "an executor did not begin with hello");
  }
  auto description = decode_description(std::span(bytes).last<Description::kBytes>());
  if (!description.ok()) return description.status();
  hello.description = description.value();
  return hello;
}

}  // namespace offpath::device
