// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/multicast/group.hpp"

#include <sodium.h>

namespace offpath::fabric::multicast {
namespace {

constexpr size_t kOnTheWireBytes = 66;  // around a datagram: UDP, IP, Ethernet with preamble and gap
constexpr size_t kBatchDatagrams = 64;

size_t batch_bytes(size_t each) {
  return each * std::max<size_t>(1, std::min(kBatchDatagrams, kMaxDatagramBytes / each));
}

}  // namespace

base::Result<std::unique_ptr<UdpGroup>> UdpGroup::open(const GroupOptions& options) {
  if (options.members < 2 || options.members > kMaxSenders || options.own >= options.members) {
    return base::Status::error(OFFPATH_ERR_ARGUMENT, "a multicast group of %u members cannot be (number %u)",
                               options.members, options.own);
  }
  if (sodium_init() < 0) return base::Status::error(OFFPATH_ERR_NO_SERVICE, "libsodium does not start");
  const Keys keys(options.secret, options.team, options.members, options.encrypts);
  auto socket = Socket::join(keys.group(), options.socket);
  if (!socket.ok()) return socket.status();
  if (options.chunk_bytes > socket->datagram_bytes() - kAroundBytes) {
    return base::Status::error(
        OFFPATH_ERR_NO_SERVICE,
        "device '%.30s' does not pass chunks of %zu bytes (the others do). Give all the same MTU",
        options.socket.device.c_str(), options.chunk_bytes);
  }
  return std::unique_ptr<UdpGroup>(new UdpGroup(options, std::move(socket.value())));
}

UdpGroup::UdpGroup(const GroupOptions& options, Socket socket)
    : own_(options.own),
      link_rate_(options.link_rate),
      keys_(options.secret, options.team, options.members, options.encrypts),
      socket_(std::move(socket)),
      chunk_bytes_(options.chunk_bytes > 0 ? options.chunk_bytes : socket_.datagram_bytes() - kAroundBytes),
      pace_(options.bytes_per_ns, static_cast<double>(kMaxDatagramBytes)),
      batch_bytes_(batch_bytes(chunk_bytes_ + kAroundBytes)),
      batch_(new uint8_t[batch_bytes_]),
      room_(new uint8_t[Socket::kMostBuffers * kMaxDatagramBytes]) {
  for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i] = room_.get() + i * kMaxDatagramBytes;
}

bool UdpGroup::push(uint64_t task, uint32_t chunk, Bytes bytes) {
  const size_t length = bytes.size() + kAroundBytes;
  if (ended_ || end_ + length > batch_bytes_) return false;
  keys_.seal({task, chunk, own_}, bytes, batch_.get() + end_, seal_);
  end_ += length;
  ended_ = bytes.size() < chunk_bytes_;
  return true;
}

bool UdpGroup::send(uint64_t now_ns) {
  if (wait_ns(now_ns) != 0) return false;
  const size_t each = chunk_bytes_ + kAroundBytes;
  const size_t bytes = socket_.send(Bytes(batch_.get() + begin_, end_ - begin_), each);
  const size_t datagrams = (bytes + each - 1) / each;
  pace_.spend(static_cast<double>(bytes + datagrams * kOnTheWireBytes));
  counts_.sent += datagrams;
  begin_ += bytes;
  if (idle()) {
    begin_ = end_ = 0;
    ended_ = false;
  }
  return bytes > 0;
}

void UdpGroup::hear(uint8_t* bytes, size_t count, size_t each, Hearer& hearer) {
  size_t from = 0;
  do {  // there are empty ones, too
    const auto opened = keys_.open({bytes + from, std::min(each, count - from)});
    if (!opened) {
      ++counts_.refused;
    } else if (opened->label.sender != own_) {
      ++counts_.received;
      hearer.on_chunk(opened->label, opened->chunk);
    }
    from += each;
  } while (from < count);
}

bool UdpGroup::progress(uint64_t now_ns, Hearer& hearer) {
  const bool sent = send(now_ns);
  const size_t filled =
      socket_.receive(buffers_, [&](uint8_t* bytes, size_t count, size_t each) { hear(bytes, count, each, hearer); });
  return sent || filled > 0;
}

}  // namespace offpath::fabric::multicast
