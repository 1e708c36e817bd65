// SPDX-License-Identifier: BSD-3-Clause
// What a re-neighbour step makes and the steps after it use: who sends what to whom, and who is whose neighbour.
#pragma once

#include <vector>

#include "atoms.hpp"
#include "cells.hpp"
#include "domain.hpp"
#include "force.hpp"
#include "halo.hpp"
#include "profile.hpp"

namespace minimd {

struct Structure {
  int local = 0, ghost = 0;
  Swap swaps[kSwaps]{};
  std::vector<int> send;
  std::vector<int> first, neighbours;  // there may be room behind the last neighbour

  ListView list() const { return {first.data(), neighbours.data()}; }
  int all() const { return local + ghost; }
  std::size_t bytes() const {
    return sizeof swaps + sizeof(int) * (send.size() + first.size() + std::size_t(first.back()));
  }
};

// The atoms whose positions are within `reach` of a face become ghosts of the neighbours: fills swaps and send, and the
// ghosts of `atoms`. On all ranks.
void find_borders(Atoms& atoms, const Domain& domain, double reach, Structure& structure);

// Fills the half list of own atoms, which are in the order of cells (start: of each cell's first), and ghosts. Of a pair
// with a ghost that rank has it whose atom is lower, so nobody counts it twice.
void build_list(const Atoms& atoms, const Domain& domain, const Cells& cells, const std::vector<int>& start,
                double reach, Structure& structure);

// Migration, order, borders, list. On all ranks.
void rebuild(Atoms& atoms, const Domain& domain, const Cells& cells, double reach, Structure& structure,
             Profile& profile);

}  // namespace minimd
