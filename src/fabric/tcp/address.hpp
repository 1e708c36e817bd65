// SPDX-License-Identifier: BSD-3-Clause
// Where an endpoint is: its random id, and the places (IP address and port) at which it listens. Pure, and made by
// nobody but endpoints: an address that was damaged on its way is refused by its checksum.
#pragma once

#include "fabric/fabric.hpp"
#include "seal/handshake.hpp"

#include <netinet/in.h>

#include <optional>
#include <vector>

namespace offpath::fabric::tcp {

using EndpointId = seal::PartyId;

struct Place {
  bool is_v6 = false;
  std::array<uint8_t, 16> ip{};  // 4 of them, or 16
  uint8_t network_bits = 0;      // of its network
  uint16_t port = 0;
  size_t ip_bytes() const { return is_v6 ? 16 : 4; }
  bool operator==(const Place&) const = default;
};

inline constexpr size_t kMaxPlaces = 8;

struct EndpointAddress {
  EndpointId id{};
  std::vector<Place> places;
  std::vector<uint8_t> encode() const;
  static std::optional<EndpointAddress> decode(Bytes in);
};

// In the order in which a service at `own` tries them: those in one of its networks first, those that are its own last
// (another machine may have the same, as bridges do).
void order_by_reach(std::vector<Place>& places, const std::vector<Place>& own);

// Returns its length.
socklen_t to_socket_address(const Place& place, sockaddr_storage& out);

}  // namespace offpath::fabric::tcp
