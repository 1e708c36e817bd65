// SPDX-License-Identifier: BSD-3-Clause
// The periodic box, cut into one brick per rank, and who the neighbours are.
#pragma once

#include <string>

namespace minimd {

struct Domain {
  double length[3];     // of the whole box
  int grid[3], at[3];   // bricks in each direction, and which of them is the own one
  double lo[3], hi[3];  // of the own brick
  int neighbour[3][2];  // ranks below and above in each direction; itself where there is one brick
  int rank, ranks;
  double volume() const { return length[0] * length[1] * length[2]; }
};

// A cube of `cells` x `cells` x `cells` cells of an fcc lattice of that density, four atoms in each. The grid of bricks
// has the least surface.
Domain make_domain(int cells, double density, int ranks, int rank);

// Empty when each brick is at least `reach` wide, so that ghosts come from neighbours only; else one line for the user.
std::string check_domain(const Domain& domain, double reach);

}  // namespace minimd
