// SPDX-License-Identifier: BSD-3-Clause
// Atoms that have left their brick go to the neighbour, and those that are there are ordered by cells.
//
// Positions alone decide. So a host that moves {x, v} and a DPU that moves {x, f} of the same atoms end with the same
// atoms in the same order without a word to each other.
#pragma once

#include <cmath>
#include <numeric>
#include <vector>

#include <mpi.h>

#include "cells.hpp"
#include "domain.hpp"

namespace minimd {

// Positions, and what travels with them: three numbers for each atom.
struct Moving {
  std::vector<double>& x;
  std::vector<double>& with;
  int atoms;
};

namespace detail {

inline void take_out(Moving& m, const Domain& domain, int d, int direction, std::vector<double>& out) {
  const double middle = 0.5 * (domain.lo[d] + domain.hi[d]);
  out.clear();
  for (int i = 0; i < m.atoms;) {
    const double x = m.x[3 * i + d];
    double away = x - middle;
    if (away > 0.5 * domain.length[d]) away -= domain.length[d];
    if (away < -0.5 * domain.length[d]) away += domain.length[d];
    const bool stays = x >= domain.lo[d] && x < domain.hi[d];
    if (stays || (domain.grid[d] > 2 && (away > 0) != (direction == 1))) {
      ++i;
      continue;
    }
    --m.atoms;
    for (std::vector<double>* column : {&m.x, &m.with}) {
      for (int k = 0; k < 3; ++k) out.push_back((*column)[3 * i + k]);
      for (int k = 0; k < 3; ++k) (*column)[3 * i + k] = (*column)[3 * m.atoms + k];
    }
  }
}

inline void put_in(Moving& m, const Domain& domain, int d, const std::vector<double>& in) {
  for (std::size_t at = 0; at + 6 <= in.size(); at += 6) {
    if (!(in[at + d] >= domain.lo[d] && in[at + d] < domain.hi[d])) continue;  // gone too far: the count shows it
    const std::size_t end = 3 * std::size_t(m.atoms);
    if (m.x.size() < end + 3) m.x.resize(end + 3);
    if (m.with.size() < end + 3) m.with.resize(end + 3);
    for (int k = 0; k < 3; ++k) m.x[end + k] = in[at + k], m.with[end + k] = in[at + 3 + k];
    ++m.atoms;
  }
}

}  // namespace detail

inline void migrate(Moving& m, const Domain& domain) {
  constexpr int kTag = 20;
  std::vector<double> out, in;
  for (int d = 0; d < 3; ++d) {
    const double length = domain.length[d];
    for (int i = 0; i < m.atoms; ++i) {
      double& x = m.x[3 * i + d];
      if (x < 0) x = x + length < length ? x + length : 0;  // rounding may not put it onto the far end
      if (x >= length) x -= length;
    }
    const int directions = domain.grid[d] == 1 ? 0 : domain.grid[d] == 2 ? 1 : 2;
    for (int direction = 0; direction < directions; ++direction) {
      const int to = domain.neighbour[d][direction], from = domain.neighbour[d][1 - direction];
      detail::take_out(m, domain, d, direction, out);
      int sent = int(out.size()), coming = 0;
      MPI_Sendrecv(&sent, 1, MPI_INT, to, kTag, &coming, 1, MPI_INT, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      in.resize(std::size_t(coming));
      MPI_Sendrecv(out.data(), sent, MPI_DOUBLE, to, kTag + 1, in.data(), coming, MPI_DOUBLE, from, kTag + 1,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      detail::put_in(m, domain, d, in);
    }
  }
}

// Atoms of a cell follow each other, in the order they had. Fills start: the atoms of cell c are start[c] to
// start[c + 1].
inline void sort_by_cell(Moving& m, const Cells& cells, std::vector<int>& start) {
  std::vector<int> cell(std::size_t(m.atoms), 0);
  start.assign(std::size_t(cells.total()) + 1, 0);
  for (int i = 0; i < m.atoms; ++i) ++start[std::size_t(cell[i] = cells.index(&m.x[3 * i])) + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
  std::vector<int> next(start.begin(), start.end() - 1);
  std::vector<double> x(3 * std::size_t(m.atoms)), with(3 * std::size_t(m.atoms));
  for (int i = 0; i < m.atoms; ++i) {
    const std::size_t to = 3 * std::size_t(next[cell[i]]++);
    for (int k = 0; k < 3; ++k) x[to + k] = m.x[3 * i + k], with[to + k] = m.with[3 * i + k];
  }
  std::copy(x.begin(), x.end(), m.x.begin());
  std::copy(with.begin(), with.end(), m.with.begin());
}

}  // namespace minimd
