// SPDX-License-Identifier: BSD-3-Clause
// Reduce-scatter over nodes, which several reductions begin with: the vector is dealt out in parts, each part has an
// owner node, and for each piece of it one member there gets what every node contributes, combined inside that node
// before. Source: the pairwise reduce-scatter of Thakur, Rabenseifner, Gropp (IJHPCA 2005), one pull per node.
#pragma once

#include "ops/collectives/fold.hpp"

namespace offpath::ops {

// Phases of a piece's transfers.
inline constexpr uint32_t kToHandler = 0;  // a member's contribution, inside its node
inline constexpr uint32_t kToOwner = 1;    // a node's contribution
inline constexpr uint32_t kResult = 2;

struct Part {
  uint64_t offset = 0;  // in the vector
  uint64_t bytes = 0;
  uint32_t node = 0;             // where it is combined
  uint32_t member = UINT32_MAX;  // by whom; UINT32_MAX: the node's members take turns
};

// A segment of a part.
struct Piece {
  uint32_t part = 0;
  uint32_t number = 0;  // among all pieces, alike on all members
  uint64_t key = 0;     // picks the members that handle it
  uint32_t owner = 0;   // rank
  uint64_t part_offset = 0;
  uint64_t offset = 0;  // in the vector
  uint64_t bytes = 0;
};

// One part per node, of about the same length.
std::vector<Part> parts_of_nodes(const Expansion& expansion, uint64_t bytes);

// The pieces of all parts: the first of each part, then the second of each, ... `first` is the part to begin with, so
// that not all members turn to the same owner first; `backwards` then takes the one before.
std::vector<Piece> cut_parts(const Expansion& expansion, const std::vector<Part>& parts, uint32_t first,
                             bool backwards = false);

// What this member adds to its node's contribution, in rank order.
void add_neighbours(const Expansion& expansion, uint32_t tag, std::vector<Contribution>& contributions);

class OwnerReduce {
 public:
  // `longest_bytes`: of all pieces.
  OwnerReduce(const Expansion& expansion, uint64_t longest_bytes);

  // This member's steps for a piece. `own`: its contribution. Returns the result where this member is the owner:
  // written to `target`, or in scratch without one. For other members the value means nothing.
  Value add(const Piece& piece, const Value& own, const graph::Place* target);

 private:
  const Expansion& expansion_;
  Slots owned_, handled_;
};

uint64_t longest_of(const std::vector<Piece>& pieces);

}  // namespace offpath::ops
