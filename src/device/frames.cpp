// SPDX-License-Identifier: BSD-3-Clause
#include "device/frames.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

namespace offpath::device {

using base::Fd;
using base::Result;
using base::Status;

namespace {

Status closed() {
  return Status::error(OFFPATH_ERR_SERVICE_LOST, "the other side of a device's channel has closed it");
}

// The descriptor that came with a message, if any.
Fd passed_descriptor(msghdr& message) {
  Fd passed;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    passed = Fd(fd);
  }
  return passed;
}

}  // namespace

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
    const ssize_t got = recv(socket_, direct ? to : buffer_.data(), direct ? bytes : buffer_.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return closed();
    if (direct) {
      to += got;
      bytes -= static_cast<size_t>(got);
    } else {
      begin_ = 0;
      end_ = static_cast<size_t>(got);
    }
  }
  return {};
}

Result<FrameHeader> FrameReader::header() {
  std::array<uint8_t, kFrameHeaderBytes> bytes;
  if (const Status status = read(bytes.data(), bytes.size()); !status.ok()) return status;
  return decode_header(bytes);
}

Status send_all(int socket, std::span<const iovec> given, int fd_to_pass) {
  std::vector<iovec> parts(given.begin(), given.end());
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd_to_pass >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd_to_pass, sizeof(int));
  }
  while (message.msg_iovlen > 0) {
    const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return closed();
    message.msg_control = nullptr;
    message.msg_controllen = 0;
    size_t left = static_cast<size_t>(sent);
    while (message.msg_iovlen > 0 && left >= message.msg_iov->iov_len) {
      left -= message.msg_iov->iov_len;
      ++message.msg_iov;
      --message.msg_iovlen;
    }
    if (message.msg_iovlen > 0) {
      message.msg_iov->iov_base = static_cast<uint8_t*>(message.msg_iov->iov_base) + left;
      message.msg_iov->iov_len -= left;
    }
  }
  return {};
}

Status send_frame(int socket, const FrameHeader& header, std::span<const uint8_t> body, std::span<const iovec> more) {
  std::array<uint8_t, kFrameHeaderBytes> head;
  encode_header(header, head);
  std::vector<iovec> parts{{head.data(), head.size()}};
  if (!body.empty()) parts.push_back({const_cast<uint8_t*>(body.data()), body.size()});
  parts.insert(parts.end(), more.begin(), more.end());
  return send_all(socket, parts);
}

Status send_command(int socket, const Command& command, std::span<const iovec> more) {
  std::array<uint8_t, Command::kBytes> body;
  encode(command, body);
  return send_frame(socket, {command.kind, Command::kBytes, command.id}, body, more);
}

Status send_hello(int socket, const Description& description, int segment) {
  std::array<uint8_t, kFrameHeaderBytes> head;
  std::array<uint8_t, Description::kBytes> body;
  encode_header({Kind::hello, Description::kBytes, 0}, head);
  encode(description, body);
  const iovec parts[] = {{head.data(), head.size()}, {body.data(), body.size()}};
  return send_all(socket, parts, segment);
}

Status receive_exactly(int socket, void* out, size_t bytes, int timeout_ms, Fd* passed) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  auto* to = static_cast<uint8_t*>(out);
  while (bytes > 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wait{socket, POLLIN, 0};
    const int ready = left.count() < 0 ? 0 : poll(&wait, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      return Status::error(OFFPATH_ERR_NO_SERVICE,
                           "no answer on a device's channel within %d ms (it is down or overloaded)", timeout_ms);
    }
    iovec part{to, bytes};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return closed();
    Fd descriptor = passed_descriptor(message);
    if (descriptor.valid() && passed != nullptr) *passed = std::move(descriptor);
    to += got;
    bytes -= static_cast<size_t>(got);
  }
  return {};
}

Result<Hello> receive_hello(int socket, int timeout_ms) {
  std::array<uint8_t, kFrameHeaderBytes + Description::kBytes> bytes;
  Hello hello;
  const Status status = receive_exactly(socket, bytes.data(), bytes.size(), timeout_ms, &hello.segment);
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
