// SPDX-License-Identifier: BSD-3-Clause
// Addresses of endpoints: whole or refused, and tried in an order.
#include "fabric/tcp/address.hpp"

#include <gtest/gtest.h>

namespace offpath::fabric::tcp {
namespace {

constexpr EndpointId kA{1};

Place place_of(std::initializer_list<uint8_t> ip, uint8_t bits, uint16_t port = 99) {
  Place place;
  std::copy(ip.begin(), ip.end(), place.ip.begin());
  place.is_v6 = ip.size() == 16;
  place.network_bits = bits;
  place.port = port;
  return place;
}

const Place kV6 = place_of({0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5}, 64);

TEST(TcpAddress, ComesBackAndIsCheckedWhole) {
  EndpointAddress address;
  address.id = kA;
  address.places = {place_of({10, 0, 0, 1}, 24, 65535), kV6};
  const auto bytes = address.encode();
  const auto back = EndpointAddress::decode(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->id, kA);
  EXPECT_EQ(back->places, address.places);
  for (size_t cut = 0; cut < bytes.size(); ++cut) EXPECT_FALSE(EndpointAddress::decode(Bytes(bytes).first(cut)));
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    auto changed = bytes;
    changed[bit / 8] = static_cast<uint8_t>(changed[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(EndpointAddress::decode(changed)) << bit;
  }
  address.places.clear();
  EXPECT_FALSE(EndpointAddress::decode(address.encode())) << "nowhere";
  address.places.assign(kMaxPlaces + 1, kV6);
  EXPECT_FALSE(EndpointAddress::decode(address.encode())) << "everywhere";
}

TEST(TcpAddress, NearPlacesAreTriedFirstAndOwnOnesLast) {
  const std::vector<Place> own{place_of({10, 1, 2, 3}, 20), place_of({172, 17, 0, 1}, 16)};
  const Place bridge = place_of({172, 17, 0, 1}, 16), far = place_of({10, 1, 99, 3}, 20), v6 = kV6;
  const Place near = place_of({10, 1, 15, 9}, 20);
  std::vector<Place> places{bridge, far, v6, near};
  order_by_reach(places, own);
  EXPECT_EQ(places, (std::vector<Place>{near, far, v6, bridge}));
  std::vector<Place> no_network{place_of({10, 1, 2, 9}, 0)};
  order_by_reach(no_network, own);
  EXPECT_EQ(no_network.size(), 1U);
}

}  // namespace
}  // namespace offpath::fabric::tcp
