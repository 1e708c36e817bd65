// SPDX-License-Identifier: BSD-3-Clause
// Cells of half the lists' reach over a brick and its ghosts. Host and DPU order atoms by them.
#pragma once

#include <algorithm>
#include <cmath>

#include "domain.hpp"

namespace minimd {

struct Cells {
  static constexpr int kAround = 2;  // cells that a list reaches to each side, and that ghosts fill

  Cells(const Domain& domain, double reach) {
    for (int d = 0; d < 3; ++d) {
      const double length = domain.hi[d] - domain.lo[d];
      const int own = std::max(1, int(length / (reach / kAround)));
      origin[d] = domain.lo[d];
      inverse[d] = own / length;
      count[d] = own + 2 * kAround + 1;  // rounding may put an atom one further
    }
  }
  int total() const { return count[0] * count[1] * count[2]; }
  int coordinate(int d, double x) const {
    return std::clamp(int(std::floor((x - origin[d]) * inverse[d])) + kAround, 0, count[d] - 1);
  }
  int index(const double* x) const {
    return (coordinate(2, x[2]) * count[1] + coordinate(1, x[1])) * count[0] + coordinate(0, x[0]);
  }

  double origin[3], inverse[3];
  int count[3];
};

}  // namespace minimd
