// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tcp/address.hpp"

#include "fabric/checksum.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace offpath::fabric::tcp {
namespace {

bool same_network(const Place& a, const Place& b) {
  const size_t bits = std::min<size_t>(std::min(a.network_bits, b.network_bits), 8 * a.ip_bytes());
  if (a.is_v6 != b.is_v6 || bits == 0) return false;
  if (!std::equal(a.ip.begin(), a.ip.begin() + static_cast<std::ptrdiff_t>(bits / 8), b.ip.begin())) return false;
  const auto mask = static_cast<uint8_t>(0xff00 >> (bits % 8));
  return bits % 8 == 0 || ((a.ip[bits / 8] ^ b.ip[bits / 8]) & mask) == 0;
}

bool same_ip(const Place& a, const Place& b) { return a.is_v6 == b.is_v6 && a.ip == b.ip; }

}  // namespace

std::vector<uint8_t> EndpointAddress::encode() const {
  std::vector<uint8_t> out(kCheckBytes);
  out.insert(out.end(), id.begin(), id.end());
  for (const Place& place : places) {
    out.push_back(place.is_v6 ? 6 : 4);
    out.push_back(place.network_bits);
    out.push_back(static_cast<uint8_t>(place.port >> 8));
    out.push_back(static_cast<uint8_t>(place.port));
    out.insert(out.end(), place.ip.begin(), place.ip.begin() + static_cast<std::ptrdiff_t>(place.ip_bytes()));
  }
  const auto check = checksum(Bytes(out).subspan(kCheckBytes));
  std::copy(check.begin(), check.end(), out.begin());
  return out;
}

std::optional<EndpointAddress> EndpointAddress::decode(Bytes in) {
  EndpointAddress out;
  if (in.size() < kCheckBytes + out.id.size()) return std::nullopt;
  const auto check = checksum(in.subspan(kCheckBytes));
  if (!std::equal(check.begin(), check.end(), in.begin())) return std::nullopt;
  std::copy_n(in.begin() + kCheckBytes, out.id.size(), out.id.begin());
  for (Bytes rest = in.subspan(kCheckBytes + out.id.size()); !rest.empty();) {
    Place place;
    if (rest.size() < 4 || (rest[0] != 4 && rest[0] != 6) || out.places.size() == kMaxPlaces) return std::nullopt;
    place.is_v6 = rest[0] == 6;
    place.network_bits = rest[1];
    place.port = static_cast<uint16_t>(rest[2] << 8 | rest[3]);
    if (rest.size() < 4 + place.ip_bytes() || place.port == 0) return std::nullopt;
    std::copy_n(rest.begin() + 4, place.ip_bytes(), place.ip.begin());
    out.places.push_back(place);
    rest = rest.subspan(4 + place.ip_bytes());
  }
  if (out.places.empty()) return std::nullopt;
  return out;
}

void order_by_reach(std::vector<Place>& places, const std::vector<Place>& own) {
  const auto rank = [&](const Place& place) {
    const auto near = [&](const Place& mine) { return same_network(place, mine); };
    const auto mine = [&](const Place& other) { return same_ip(place, other); };
    if (std::any_of(own.begin(), own.end(), mine)) return 2;
    return std::any_of(own.begin(), own.end(), near) ? 0 : 1;
  };
  std::stable_sort(places.begin(), places.end(), [&](const Place& a, const Place& b) { return rank(a) < rank(b); });
}

socklen_t to_socket_address(const Place& place, sockaddr_storage& out) {
  out = {};
  if (place.is_v6) {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(out);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(place.port);
    memcpy(&v6.sin6_addr, place.ip.data(), 16);
    return sizeof(v6);
  }
  auto& v4 = reinterpret_cast<sockaddr_in&>(out);
  v4.sin_family = AF_INET;
  v4.sin_port = htons(place.port);
  memcpy(&v4.sin_addr, place.ip.data(), 4);
  return sizeof(v4);
}

}  // namespace offpath::fabric::tcp
