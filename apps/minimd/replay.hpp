// SPDX-License-Identifier: BSD-3-Clause
// What the other side does on a re-neighbour step: all forces by the old lists, then the host's decisions again, so that
// forces come home in the new order. Host and DPU run this.
#pragma once

#include <vector>

#include "force.hpp"
#include "halo.hpp"
#include "migrate.hpp"

namespace minimd {

// Lists wherever they lie.
struct StructureView {
  const Swap* swaps;
  const int* send;
  ListView list;
  int local, ghost;
};

// x: own atoms; it and f get room for ghosts. compute(x, f, begin, end) adds the forces of these atoms.
template <class Compute>
inline Sums old_forces(std::vector<double>& x, std::vector<double>& f, const StructureView& s, int rank,
                       std::vector<double>& buffer, Compute compute) {
  const std::size_t all = 3 * (std::size_t(s.local) + std::size_t(s.ghost));
  x.resize(all);
  f.assign(all, 0.0);
  forward(s.swaps, kSwaps, s.send, x.data(), rank, buffer);
  const Sums sums = compute(x.data(), f.data(), 0, s.local);
  reverse(s.swaps, s.send, f.data(), rank, buffer);
  return sums;
}

// Ghosts are dropped.
inline void replay(std::vector<double>& x, std::vector<double>& f, int local, const Domain& domain,
                   const Cells& cells) {
  std::vector<int> start;
  Moving moving{x, f, local};
  migrate(moving, domain);
  sort_by_cell(moving, cells, start);
  x.resize(3 * std::size_t(moving.atoms));
  f.resize(3 * std::size_t(moving.atoms));
}

}  // namespace minimd
