// SPDX-License-Identifier: BSD-3-Clause
#include "device/line.hpp"

#include "base/bytes.hpp"
#include "base/passing.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

namespace offpath::device {

using base::Fd;
using base::Result;
using base::Status;
using seal::kTagBytes;
using Clock = std::chrono::steady_clock;

namespace {

constexpr size_t kMostRecordBytes = 64 << 10;
constexpr size_t kHeadBytes = 4 + kTagBytes;

Status closed() {
  return Status::error(OFFPATH_ERR_SERVICE_LOST, "the other side of a device's channel has closed it");
}

Status send_plain(int socket, std::vector<iovec> parts, int fd_to_pass) {
  std::span<iovec> left = parts;
  size_t descriptors = fd_to_pass >= 0 ? 1 : 0;
  while (!left.empty()) {
    const ssize_t sent = base::send_passing(socket, left, {&fd_to_pass, std::exchange(descriptors, 0)});
    if (sent < 0) return closed();
    auto gone = static_cast<size_t>(sent);
    for (; !left.empty() && gone >= left[0].iov_len; left = left.subspan(1)) gone -= left[0].iov_len;
    if (!left.empty()) left[0] = {static_cast<uint8_t*>(left[0].iov_base) + gone, left[0].iov_len - gone};
  }
  return {};
}

Status receive_plain(int socket, void* out, size_t bytes, int timeout_ms, Fd* passed) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  auto* to = static_cast<uint8_t*>(out);
  while (bytes > 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait{socket, POLLIN, 0};
    const int ready = timeout_ms < 0 ? 1 : left < 0 ? 0 : poll(&wait, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      return Status::error(OFFPATH_ERR_NO_SERVICE,
                           "no answer on a device's channel within %d ms (it is down or overloaded)", timeout_ms);
    }
    Fd descriptor;
    const auto [got, flags] = base::receive_passing(socket, to, bytes, {&descriptor, 1});
    if (got <= 0) return closed();
    if ((flags & MSG_CTRUNC) != 0) return base::no_descriptor_left();
    if (descriptor.valid() && passed != nullptr) *passed = std::move(descriptor);
    to += got;
    bytes -= static_cast<size_t>(got);
  }
  return {};
}

}  // namespace

struct Line::Sealed {
  Sealed(const seal::Session& session, seal::Security security)
      : sealer(session.out, session.suite, security), opener(session.in, session.suite, security) {}

  // The next record's bytes into `rest`.
  Status receive_record(int socket, int timeout_ms) {
    std::array<uint8_t, kHeadBytes> head;
    Status status = receive_plain(socket, head.data(), head.size(), timeout_ms, nullptr);
    if (!status.ok()) return status;
    if (!opener.open(std::span(head).first<4>(), head.data() + 4)) return changed();
    const auto bytes = base::ByteReader(head.data()).number<uint32_t>();
    if (bytes == 0 || bytes > kMostRecordBytes) return changed();
    in.resize(bytes + kTagBytes);
    status = receive_plain(socket, in.data(), in.size(), timeout_ms, nullptr);
    if (!status.ok()) return status;
    if (!opener.open(std::span(in).first(bytes), in.data() + bytes)) return changed();
    rest = std::span(in).first(bytes);
    return {};
  }
  static Status changed() {
    return Status::error(OFFPATH_ERR_PERMISSION,
                         "what came on a device's channel is not what was sent (somebody on the way has changed it). "
                         "See who is between host and device");
  }

  seal::Sealer sealer;
  seal::Opener opener;
  std::vector<uint8_t> out, in;
  std::span<const uint8_t> rest;  // of `in`, not taken yet
};

Line::Line(int socket, const seal::Session& session, seal::Security security)
    : socket_(socket), sealed_(std::make_shared<Sealed>(session, security)) {}

Status Line::send(std::span<const iovec> parts, int fd_to_pass) const {
  if (sealed_ == nullptr) return send_plain(socket_, {parts.begin(), parts.end()}, fd_to_pass);
  std::vector<uint8_t>& out = sealed_->out;
  size_t in_record = 0;
  out.resize(kHeadBytes + kMostRecordBytes + kTagBytes);
  const auto send_record = [&] {
    base::ByteWriter(out.data()).number(static_cast<uint32_t>(in_record));
    sealed_->sealer.seal(std::span(out).first(4), out.data(), out.data() + 4);
    uint8_t* const body = out.data() + kHeadBytes;
    sealed_->sealer.seal({body, in_record}, body, body + in_record);
    const size_t all = kHeadBytes + std::exchange(in_record, 0) + kTagBytes;
    return send_plain(socket_, {{out.data(), all}}, -1);
  };
  for (const iovec& part : parts) {
    const auto* from = static_cast<const uint8_t*>(part.iov_base);
    for (size_t left = part.iov_len; left > 0;) {
      const size_t count = std::min(left, kMostRecordBytes - in_record);
      memcpy(out.data() + kHeadBytes + in_record, from, count);
      from += count;
      left -= count;
      in_record += count;
      if (in_record < kMostRecordBytes) continue;
      if (const Status status = send_record(); !status.ok()) return status;
    }
  }
  return in_record == 0 ? Status() : send_record();
}

Status Line::receive(void* out, size_t bytes, int timeout_ms, Fd* passed) const {
  if (sealed_ == nullptr) return receive_plain(socket_, out, bytes, timeout_ms, passed);
  auto* to = static_cast<uint8_t*>(out);
  while (bytes > 0) {
    if (sealed_->rest.empty()) {
      if (const Status status = sealed_->receive_record(socket_, timeout_ms); !status.ok()) return status;
    }
    const size_t count = std::min(bytes, sealed_->rest.size());
    memcpy(to, sealed_->rest.data(), count);
    sealed_->rest = sealed_->rest.subspan(count);
    to += count;
    bytes -= count;
  }
  return {};
}

Result<size_t> Line::receive_some(void* out, size_t bytes) const {
  if (sealed_ == nullptr) {
    ssize_t got = -1;
    do {
      got = recv(socket_, out, bytes, 0);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) return closed();
    return static_cast<size_t>(got);
  }
  if (sealed_->rest.empty()) {
    if (const Status status = sealed_->receive_record(socket_, kForever); !status.ok()) return status;
  }
  const size_t count = std::min(bytes, sealed_->rest.size());
  const Status status = receive(out, count, kForever);
  if (!status.ok()) return status;
  return count;
}

std::array<uint8_t, kSessionBytes> encode_session(const seal::Session& session, seal::Security security) {
  std::array<uint8_t, kSessionBytes> out;
  auto at = std::copy(session.out.begin(), session.out.end(), out.begin());
  at = std::copy(session.in.begin(), session.in.end(), at);
  *at++ = static_cast<uint8_t>(session.suite);
  *at = static_cast<uint8_t>(security);
  return out;
}

Line decode_line(int socket, std::span<const uint8_t, kSessionBytes> bytes) {
  seal::Session session;
  std::copy_n(bytes.begin(), session.out.size(), session.out.begin());
  std::copy_n(bytes.begin() + sizeof(seal::Key), session.in.size(), session.in.begin());
  session.suite = static_cast<seal::Suite>(bytes[kSessionBytes - 2]);
  return {socket, session, static_cast<seal::Security>(bytes[kSessionBytes - 1])};
}

}  // namespace offpath::device
