// SPDX-License-Identifier: BSD-3-Clause
#include "domain.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace minimd {
namespace {

std::array<int, 3> least_surface(int ranks) {
  std::array<int, 3> best{1, 1, ranks};
  double least = INFINITY;
  for (int x = 1; x <= ranks; ++x) {
    if (ranks % x) continue;
    for (int y = 1; y <= ranks / x; ++y) {
      if ((ranks / x) % y) continue;
      const int z = ranks / x / y;
      const double surface = 1.0 / (x * y) + 1.0 / (y * z) + 1.0 / (x * z);
      if (surface < least) least = surface, best = {x, y, z};
    }
  }
  return best;
}

}  // namespace

Domain make_domain(int cells, double density, int ranks, int rank) {
  Domain domain{};
  domain.rank = rank, domain.ranks = ranks;
  const auto grid = least_surface(ranks);
  const int stride[3] = {1, grid[0], grid[0] * grid[1]};
  for (int d = 0; d < 3; ++d) {
    domain.length[d] = cells * std::cbrt(4.0 / density);
    domain.grid[d] = grid[d];
    domain.at[d] = rank / stride[d] % grid[d];
    domain.lo[d] = domain.at[d] * domain.length[d] / grid[d];
    domain.hi[d] = (domain.at[d] + 1) * domain.length[d] / grid[d];
    const int below = (domain.at[d] + grid[d] - 1) % grid[d], above = (domain.at[d] + 1) % grid[d];
    domain.neighbour[d][0] = rank + (below - domain.at[d]) * stride[d];
    domain.neighbour[d][1] = rank + (above - domain.at[d]) * stride[d];
  }
  return domain;
}

std::string check_domain(const Domain& domain, double reach) {
  for (int d = 0; d < 3; ++d) {
    if (domain.length[d] / domain.grid[d] < reach)
      return "the box is too small for " + std::to_string(domain.ranks) +
             " ranks (a brick would be narrower than cutoff and skin). Use fewer ranks or more --cells";
  }
  return {};
}

}  // namespace minimd
