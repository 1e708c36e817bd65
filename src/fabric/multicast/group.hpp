// SPDX-License-Identifier: BSD-3-Clause
// Group: what the nodes of a team say to all others at once. Chunks are lost, overtake each other and come twice, but what comes was
// sent by a member of the group, and not changed. Used by one thread. Nothing blocks. docs/design/0022-multicast.md
#pragma once

#include "fabric/multicast/pace.hpp"
#include "fabric/multicast/socket.hpp"

#include <memory>

namespace offpath::fabric::multicast {

class Hearer {
 public:
  virtual ~Hearer() = default;
  // Of another member. The bytes are there during the call.
  virtual void on_chunk(const Label& label, Bytes chunk) = 0;
};

struct GroupOptions {
  Secret secret{};  // of the job's fabric
  TeamId team{};
  uint32_t own = 0;
  uint32_t members = 0;
  bool encrypts = false;
  size_t chunk_bytes = 0;   // 0: as long as the device allows; what all have agreed on
  double bytes_per_ns = 0;  // with all that is around them on the wire; 0: unbounded
  SocketOptions socket;
};

struct GroupCounts {
  uint64_t sent = 0;      // datagrams
  uint64_t received = 0;  // of others, proven
  uint64_t refused = 0;   // of strangers, of other groups, or changed
};

class Group {
 public:
  static base::Result<std::unique_ptr<Group>> open(const GroupOptions& options);

  size_t chunk_bytes() const { return chunk_bytes_; }
  // Takes a chunk to be sent; it is copied. Each chunk of a task once at most. False: no room before some have left.
  // Precondition: no longer than chunk_bytes().
  bool push(uint64_t task, uint32_t chunk, Bytes bytes);
  // Sends what may leave now and delivers what has come, a bounded number. Returns whether anything happened.
  bool progress(uint64_t now_ns, Hearer& hearer);
  // All that was pushed has left.
  bool idle() const { return begin_ == batch_.size(); }
  // How long progress() has nothing to send; UINT64_MAX: nothing is there.
  uint64_t wait_ns(uint64_t now_ns) { return idle() ? UINT64_MAX : pace_.wait_ns(now_ns); }
  void set_rate(double bytes_per_ns) { pace_.set_rate(bytes_per_ns); }
  int event_fd() const { return socket_.fd(); }  // readable when something has come
  const GroupCounts& counts() const { return counts_; }

 private:
  Group(const GroupOptions& options, Socket socket);
  bool send(uint64_t now_ns);
  void hear(uint8_t* bytes, size_t count, size_t each, Hearer& hearer);

  const uint32_t own_;
  Keys keys_;
  Socket socket_;
  const size_t chunk_bytes_;
  Pace pace_;
  std::vector<uint8_t> batch_;  // sealed datagrams of one length, but the last; `begin_` of its bytes have left
  size_t begin_ = 0;
  bool ended_ = false;               // by a shorter one
  std::unique_ptr<uint8_t[]> room_;  // where datagrams come
  std::array<uint8_t*, Socket::kMostBuffers> buffers_{};
  GroupCounts counts_;
};

}  // namespace offpath::fabric::multicast
