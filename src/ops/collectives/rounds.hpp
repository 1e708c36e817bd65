// SPDX-License-Identifier: BSD-3-Clause
// Rounds in which pairs of nodes exchange. Where the nodes are no power of two, the first ones join in pairs, of which the odd one
// takes part for both.
#pragma once

#include <bit>
#include <cstdint>

namespace offpath::ops {

inline constexpr uint32_t kFirstRound = 3;  // phase of its transfers: after those of owners.hpp

struct Rounds {
  uint32_t active = 1;  // power of two
  uint32_t paired = 0;  // nodes in pairs, the first ones

  explicit Rounds(uint32_t nodes) : active(std::bit_floor(nodes)), paired(2 * (nodes - active)) {}
  uint32_t count() const { return static_cast<uint32_t>(std::countr_zero(active)); }
  bool rests(uint32_t node) const { return node < paired && node % 2 == 0; }
  bool takes_partner(uint32_t node) const { return node < paired && !rests(node); }
  uint32_t place_of(uint32_t node) const { return node < paired ? node / 2 : node - paired / 2; }
  uint32_t node_at(uint32_t place) const { return place < paired / 2 ? 2 * place + 1 : place + paired / 2; }
  // That one exchanges with in the round.
  uint32_t other(uint32_t node, uint32_t round) const { return node_at(place_of(node) ^ (1U << round)); }
  // Whether it is the lower one of the two.
  bool is_lower(uint32_t node, uint32_t round) const { return (place_of(node) >> round & 1) == 0; }
};

}  // namespace offpath::ops
