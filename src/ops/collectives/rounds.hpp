// SPDX-License-Identifier: BSD-3-Clause
// Allreduce in rounds in which pairs of nodes exchange. Where the nodes are no power of two, the first ones join in pairs, of which
// the odd one takes part for both.
#pragma once

#include "ops/collectives/fold.hpp"

#include <bit>
#include <cstdint>
#include <functional>

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
};

// One segment, for the member that does the work of a node that does not rest.
struct RoundsOfSegment {
  const Rounds& rounds;
  Slots& slots;
  Buffer& own;  // the member's contribution
  uint32_t number;
  uint64_t bytes;
  graph::Place target;  // of the result
};

// `sum`: what the node contributes, and the one that it takes part for; without any rounds it is the result, at the target. Returns
// the step after which all of the result is there.
using CombineInRounds = std::function<uint32_t(const RoundsOfSegment& segment, Value sum)>;

// What comes before the rounds, and after them. `slots_in_rounds`: that `combine` takes for a segment.
void allreduce_in_rounds(const Expansion& expansion, const Segments& segments, uint32_t slots_in_rounds,
                         const CombineInRounds& combine);

}  // namespace offpath::ops
