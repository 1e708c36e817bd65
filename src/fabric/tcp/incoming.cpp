// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tcp/incoming.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace offpath::fabric::tcp {
namespace {

constexpr int kReadsInARow = 8;
constexpr size_t kWakeUpBytes = 256 << 10;  // to wake up for
constexpr size_t kSmallRestBytes = 4 << 10;
constexpr size_t kMostKeptBytes = 4 << 20;

Got why(ssize_t got) {
  if (got == 0) return Got::end;
  return errno == EAGAIN ? Got::all : Got::broken;
}

ssize_t receive(int socket, msghdr& message) {
  ssize_t got = -1;
  do {
    got = recvmsg(socket, &message, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  return got;
}

}  // namespace

bool BriefIncoming::take(std::span<uint8_t> bytes, Opener& opener, Sink& sink, size_t& used) {
  used = 0;
  while (bytes.size() - used >= kPrefixBytes) {
    const auto prefix = bytes.subspan(used).first<kPrefixBytes>();
    // Opened once, when all of it is there: until then it is known how long a frame can be, at most.
    const uint64_t number = opener.number();
    std::array<uint8_t, kPrefixBytes> plain;
    std::copy(prefix.begin(), prefix.end(), plain.begin());
    if (!open_prefix(opener, plain)) return false;
    const auto frame = decode(Lane::brief, std::span(plain).first<kFrameBytes>());
    if (!frame) return false;
    const size_t tail = frame->tail_bytes();
    if (bytes.size() - used < kPrefixBytes + tail) {
      opener.go_back_to(number);
      return true;
    }
    const auto payload = bytes.subspan(used + kPrefixBytes, frame->payload_bytes);
    if (tail > 0 && !opener.open(payload, payload.data() + payload.size())) return false;
    used += kPrefixBytes + tail;
    sink.on_frame(*frame, payload);
  }
  return true;
}

Got BriefIncoming::read(int socket, bool ending, Opener& opener, std::span<uint8_t> scratch, Sink& sink) {
  for (int i = 0; i < kReadsInARow; ++i) {
    size_t there = rest_.size();
    std::copy(rest_.begin(), rest_.end(), scratch.begin());
    iovec part{scratch.data() + there, scratch.size() - there};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const ssize_t got = receive(socket, message);
    if (got <= 0) return why(got);
    const bool filled = static_cast<size_t>(got) == part.iov_len;
    there += static_cast<size_t>(got);
    size_t used = 0;
    if (!take(scratch.first(there), opener, sink, used)) return Got::wrong;
    rest_.assign(scratch.begin() + static_cast<std::ptrdiff_t>(used),
                 scratch.begin() + static_cast<std::ptrdiff_t>(there));
    if (!filled && !ending) return Got::all;  // what comes from now on is told
  }
  return Got::more;
}

void BulkIncoming::fetch(uint8_t* buffer, uint64_t context) {
  stage_ = Stage::payload;
  got_ = 0;
  buffer_ = buffer;
  context_ = context;
  const bool is_proven_first = buffer != nullptr && frame_.tagged;
  if (is_proven_first && unproven_.size() < frame_.payload_bytes) unproven_.resize(frame_.payload_bytes);
}

void BulkIncoming::drop() { fetch(nullptr, 0); }

// The rest of the payload, its tag and the next prefix, or of the prefix that is awaited: never more than that, so
// nothing has to be moved.
ssize_t BulkIncoming::receive(int socket, size_t& asked) {
  iovec parts[3];
  msghdr message{};
  message.msg_iov = parts;
  if (stage_ == Stage::prefix) {
    asked = kPrefixBytes - got_;
    parts[0] = {prefix_.data() + got_, asked};
    message.msg_iovlen = 1;
    return tcp::receive(socket, message);
  }
  const size_t left = frame_.tail_bytes() - got_;
  if (buffer_ == nullptr) {
    asked = left;
    ssize_t dropped = -1;
    do {
      dropped = recv(socket, nullptr, left, MSG_DONTWAIT | MSG_TRUNC);
    } while (dropped < 0 && errno == EINTR);
    return dropped;
  }
  asked = left + kPrefixBytes;
  const size_t of_payload = std::min<size_t>(got_, frame_.payload_bytes);
  const size_t of_tag = got_ - of_payload;
  const auto add_part = [&](uint8_t* begin, size_t bytes) {
    if (bytes > 0) parts[message.msg_iovlen++] = {begin, bytes};
  };
  add_part((frame_.tagged ? unproven_.data() : buffer_) + of_payload, frame_.payload_bytes - of_payload);
  add_part(tag_.data() + of_tag, frame_.tail_bytes() - frame_.payload_bytes - of_tag);
  add_part(prefix_.data(), kPrefixBytes);
  return tcp::receive(socket, message);
}

bool BulkIncoming::advance(Opener& opener, Sink& sink) {
  if (stage_ == Stage::payload && got_ >= frame_.tail_bytes()) {
    got_ -= frame_.tail_bytes();
    stage_ = Stage::prefix;
    uint8_t* const buffer = std::exchange(buffer_, nullptr);
    if (buffer == nullptr) {
      if (frame_.tagged) opener.pass();
    } else {
      const std::span payload = std::span(unproven_).first(frame_.tagged ? frame_.payload_bytes : 0);
      const bool proven = !frame_.tagged || opener.open(payload, tag_.data());
      if (proven) std::copy(payload.begin(), payload.end(), buffer);
      if (unproven_.size() > kMostKeptBytes) unproven_ = {};
      sink.on_fetched(context_, proven);
      if (!proven) return false;
    }
  }
  if (stage_ != Stage::prefix || got_ < kPrefixBytes) return true;
  if (!open_prefix(opener, prefix_)) return false;
  const auto frame = decode(Lane::bulk, std::span(prefix_).first<kFrameBytes>());
  if (!frame) return false;
  got_ = 0;
  if (frame->kind == FrameKind::bye) {
    sink.on_bye();
    return true;
  }
  frame_ = *frame;
  stage_ = Stage::waiting;
  sink.on_announced(frame_);  // which may call fetch()
  return true;
}

Got BulkIncoming::read(int socket, bool ending, Opener& opener, Sink& sink) {
  for (int i = 0; i < kReadsInARow; ++i) {
    if (stage_ == Stage::waiting) return Got::pause;
    size_t asked = 0;
    const ssize_t got = receive(socket, asked);
    const bool drained = got < 0 ? errno == EAGAIN : static_cast<size_t>(got) < asked;
    if (got <= 0 && !drained) return why(got);
    if (got == 0) return Got::end;
    if (got > 0) got_ += static_cast<size_t>(got);
    if (got > 0 && !advance(opener, sink)) return Got::wrong;
    if (!drained || (ending && got > 0) || stage_ == Stage::waiting || adapt_low_water(socket)) continue;
    return Got::all;
  }
  return stage_ == Stage::waiting ? Got::pause : Got::more;
}

bool BulkIncoming::adapt_low_water(int socket) {
  const size_t rest = stage_ == Stage::payload ? frame_.tail_bytes() - got_ : 1;
  const size_t wanted = rest < kSmallRestBytes ? 1 : std::min(rest, kWakeUpBytes);
  if (wanted >= low_water_ && wanted < 2 * low_water_) return false;
  const bool lower = wanted < low_water_;
  low_water_ = wanted;
  const int value = static_cast<int>(wanted);
  setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &value, sizeof(value));
  return lower;  // before Linux 4.18 nobody is woken for what is there already
}

bool BulkIncoming::give_up(uint64_t& context) {
  const bool fetching = stage_ == Stage::payload && buffer_ != nullptr;
  context = context_;
  stage_ = Stage::prefix;
  buffer_ = nullptr;
  unproven_ = {};
  got_ = 0;
  return fetching;
}

}  // namespace offpath::fabric::tcp
