// SPDX-License-Identifier: BSD-3-Clause
// A UDP socket that has joined a multicast group on one device, and how many datagrams go through it in one call.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "fabric/multicast/datagram.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <string>

namespace offpath::fabric::multicast {

struct SocketOptions {
  std::string device;            // its name
  int receive_buffer_bytes = 0;  // 0: as large as the system allows, up to 8 MiB
  int hops = 1;                  // routers that it may pass, and one
  bool segments = true;          // leave cutting to the kernel where it can do it
};

// Follows from the group's name, so nobody has to agree on it. One that another group has, too, costs time only.
sockaddr_in address_of(const GroupId& group);

class Socket {
 public:
  // Fails where the device is unknown, cannot multicast, or belongs to too many groups.
  static base::Result<Socket> join(const GroupId& group, const SocketOptions& options);

  int fd() const { return fd_.get(); }
  // The longest datagram that the device passes whole.
  size_t datagram_bytes() const { return datagram_bytes_; }

  // Sends datagrams that lie one behind the other; all are `each` long, but the last, which may be shorter. Returns the
  // bytes that have left: less, if the socket is full. What the network does not take is lost as others may be.
  size_t send(Bytes datagrams, size_t each);
  // Receives into buffers of kMaxDatagramBytes each, and calls hear(buffer, bytes, each) for what came into one: datagrams
  // of `each` bytes, but the last. Returns how many buffers were filled.
  template <typename Hear>
  size_t receive(std::span<uint8_t* const> buffers, Hear hear) {
    std::array<Filled, kMostBuffers> filled;
    const size_t count = receive_into(buffers.first(std::min(buffers.size(), kMostBuffers)), filled);
    for (size_t i = 0; i < count; ++i) hear(buffers[i], filled[i].bytes, filled[i].each);
    return count;
  }
  static constexpr size_t kMostBuffers = 32;

 private:
  struct Filled {
    size_t bytes = 0, each = 0;
  };
  size_t receive_into(std::span<uint8_t* const> buffers, std::array<Filled, kMostBuffers>& filled);
  size_t send_segmented(Bytes datagrams, size_t each);
  size_t send_each(Bytes datagrams, size_t each);

  base::Fd fd_;
  sockaddr_in address_{};
  size_t datagram_bytes_ = 0;
  bool segments_ = true;
};

}  // namespace offpath::fabric::multicast
