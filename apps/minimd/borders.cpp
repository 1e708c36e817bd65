// SPDX-License-Identifier: BSD-3-Clause
#include "structure.hpp"

namespace minimd {
namespace {

constexpr int kTag = 30;

// One swap: atoms before `end` that are near that face go to the neighbour behind it, others come from the other side.
void add_swap(Atoms& atoms, const Domain& domain, double reach, int d, int direction, int end, Structure& s) {
  Swap& swap = s.swaps[2 * d + direction];
  const bool at_end = domain.at[d] == (direction == 0 ? 0 : domain.grid[d] - 1);
  swap = {
      domain.neighbour[d][direction], domain.neighbour[d][1 - direction], d, 0, int(s.send.size()), 0, atoms.all(), 0};
  if (at_end) swap.shift = direction == 0 ? domain.length[d] : -domain.length[d];
  for (int i = 0; i < end; ++i) {
    const double x = atoms.x[3 * i + d];
    if (direction == 0 ? x < domain.lo[d] + reach : x >= domain.hi[d] - reach) s.send.push_back(i);
  }
  swap.send_count = int(s.send.size()) - swap.first_send;
  swap.ghost_count = swap.send_count;
  if (swap.to != domain.rank) {
    MPI_Sendrecv(&swap.send_count, 1, MPI_INT, swap.to, kTag, &swap.ghost_count, 1, MPI_INT, swap.from, kTag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  atoms.ghost += swap.ghost_count;
}

}  // namespace

void find_borders(Atoms& atoms, const Domain& domain, double reach, Structure& structure) {
  structure.send.clear();
  atoms.ghost = 0;
  std::vector<double> buffer;
  for (int d = 0; d < 3; ++d) {
    const int end = atoms.all();
    for (int direction = 0; direction < 2; ++direction) {
      add_swap(atoms, domain, reach, d, direction, end, structure);
      atoms.x.resize(3 * std::size_t(atoms.all()));
      forward(&structure.swaps[2 * d + direction], 1, structure.send.data(), atoms.x.data(), domain.rank, buffer);
    }
  }
  structure.local = atoms.local;
  structure.ghost = atoms.ghost;
}

}  // namespace minimd
