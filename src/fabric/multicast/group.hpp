// SPDX-License-Identifier: BSD-3-Clause
// Groups over UDP and IP multicast (IPv4). docs/design/0022-multicast.md
#pragma once

#include "fabric/multicast/pace.hpp"
#include "fabric/multicast/socket.hpp"

#include <memory>

namespace offpath::fabric::multicast {

struct GroupOptions {
  Secret secret{};  // of the job's fabric
  TeamId team{};
  uint32_t own = 0;
  uint32_t members = 0;
  bool encrypts = false;
  size_t chunk_bytes = 0;   // 0: as long as the device allows; what all have agreed on
  double bytes_per_ns = 0;  // with all that is around them on the wire; 0: unbounded
  uint64_t link_rate = 0;   // of the device, in bytes per second; 0: unknown
  SocketOptions socket;
};

class UdpGroup : public Group {
 public:
  static base::Result<std::unique_ptr<UdpGroup>> open(const GroupOptions& options);

  size_t chunk_bytes() const override { return chunk_bytes_; }
  bool push(uint64_t task, uint32_t chunk, Bytes bytes) override;
  bool progress(uint64_t now_ns, Hearer& hearer) override;
  bool idle() const override { return begin_ == end_; }
  uint64_t wait_ns(uint64_t now_ns) override { return idle() ? UINT64_MAX : pace_.wait_ns(now_ns); }
  uint64_t busy_ns(uint64_t now_ns) override { return pace_.wait_ns(now_ns, static_cast<double>(end_ - begin_)); }
  void set_rate(double bytes_per_ns) override { pace_.set_rate(bytes_per_ns); }
  uint32_t seals() const override { return seal::known_suites(); }
  void set_seals(uint32_t seals) override { seal_ = seal::best_of(seals); }
  uint64_t link_rate() const override { return link_rate_; }
  int event_fd() const override { return socket_.fd(); }
  const GroupCounts& counts() const override { return counts_; }

 private:
  UdpGroup(const GroupOptions& options, Socket socket);
  bool send(uint64_t now_ns);
  void hear(uint8_t* bytes, size_t count, size_t each, Hearer& hearer);

  const uint32_t own_;
  const uint64_t link_rate_;
  Keys keys_;
  Seal seal_ = Seal::chacha;  // of what is sent
  Socket socket_;
  const size_t chunk_bytes_;
  Pace pace_;
  const size_t batch_bytes_;
  std::unique_ptr<uint8_t[]> batch_;  // sealed datagrams of one length, but the last; up to `begin_` they have left
  size_t begin_ = 0, end_ = 0;
  bool ended_ = false;               // by a shorter one
  std::unique_ptr<uint8_t[]> room_;  // where datagrams come
  std::array<uint8_t*, Socket::kMostBuffers> buffers_{};
  GroupCounts counts_;
};

}  // namespace offpath::fabric::multicast
