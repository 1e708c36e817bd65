// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tcp/outgoing.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

namespace offpath::fabric::tcp {
namespace {
constexpr size_t kParts = 64;
constexpr size_t kSpare = 8, kMostSpareBytes = 4 << 20;
constexpr size_t kWorthwhileBytes = 512 << 10;  // in one call; also what is sealed ahead
}  // namespace

void Outgoing::add(FrameKind kind, Bytes header, Bytes payload, uint64_t context, bool tagged) {
  Frame frame;
  frame.kind = kind;
  frame.tagged = tagged;
  frame.header_bytes = static_cast<uint8_t>(header.size());
  frame.payload_bytes = static_cast<uint32_t>(payload.size());
  std::copy(header.begin(), header.end(), frame.header.begin());
  Item& item = items_.emplace_back();
  encode(frame, std::span(item.prefix).first<kFrameBytes>());
  item.tagged = tagged;
  item.payload = payload;
  item.context = context;
  bytes_ += item.bytes();
}

// As late as possible: in the order of leaving, under the key of the connection that there is then.
void Outgoing::seal(Item& item, Sealer& sealer) {
  if (item.sealed) return;
  item.sealed = true;
  seal_prefix(sealer, item.prefix);
  if (item.payload.empty() || !item.tagged) return;
  if (!spare_.empty()) {
    item.copy = std::move(spare_.back());
    spare_.pop_back();
  }
  const size_t bytes = item.payload.size() + kTagBytes;
  if (item.copy.size() < bytes) item.copy.resize(bytes);
  bytes_ += kTagBytes;
  sealer.seal(item.payload, item.copy.data(), item.copy.data() + item.payload.size());
}

Outgoing::Progress Outgoing::write(int socket, Sealer& sealer, std::vector<uint64_t>& sent) {
  while (!items_.empty()) {
    iovec parts[kParts];
    size_t count = 0, total = 0, skip = written_;
    const auto add_part = [&](Bytes bytes) {
      const size_t left_out = std::min(skip, bytes.size());
      skip -= left_out;
      if (left_out == bytes.size()) return;
      parts[count++] = {const_cast<uint8_t*>(bytes.data()) + left_out, bytes.size() - left_out};
      total += bytes.size() - left_out;
    };
    for (Item& item : items_) {
      if (count + 2 > kParts || total >= kWorthwhileBytes) break;
      seal(item, sealer);
      add_part(item.prefix);
      add_part(item.tail());
    }
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t moved = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (moved >= 0) {
      advance(static_cast<size_t>(moved), sent);
    } else if (errno != EINTR) {
      return errno == EAGAIN || errno == ENOBUFS ? Progress::full : Progress::broken;
    }
  }
  return Progress::empty;
}

void Outgoing::advance(size_t bytes, std::vector<uint64_t>& sent) {
  written_ += bytes;
  while (!items_.empty() && written_ >= items_.front().bytes()) {
    written_ -= items_.front().bytes();
    bytes_ -= items_.front().bytes();
    if (!items_.front().payload.empty()) sent.push_back(items_.front().context);
    const size_t room = items_.front().copy.size();
    if (room > 0 && room <= kMostSpareBytes && spare_.size() < kSpare) spare_.push_back(std::move(items_.front().copy));
    items_.pop_front();
  }
}

std::vector<uint64_t> Outgoing::give_up() {
  std::vector<uint64_t> out;
  for (const Item& item : items_) {
    if (!item.payload.empty()) out.push_back(item.context);
  }
  items_.clear();
  written_ = bytes_ = 0;
  return out;
}

}  // namespace offpath::fabric::tcp
