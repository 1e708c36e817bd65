// SPDX-License-Identifier: BSD-3-Clause
#include "grid.hpp"

#include <algorithm>

namespace amr {

int Grid::owner(int patch) const {
  int rank = int(std::int64_t(patch) * ranks_ / patches());
  while (patch < first(rank)) --rank;
  while (patch >= first(rank + 1)) ++rank;
  return rank;
}

int Grid::neighbour(int patch, int dx, int dy) const {
  const int to_x = x(patch) + dx, to_y = y(patch) + dy;
  if (to_x < 0 || to_x >= across_ || to_y < 0 || to_y >= down_) return -1;
  return to_x * down_ + to_y;
}

template <class Call>
void Grid::around(int patch, Call call) const {
  for (int dx = -1; dx <= 1; ++dx)
    for (int dy = -1; dy <= 1; ++dy)
      if (const int other = neighbour(patch, dx, dy); other >= 0) call(other);
}

std::vector<int> Grid::wanted(const std::vector<int>& busy, int finest) const {
  std::vector<int> levels(std::size_t(patches()), 0);
  for (int p = 0; p < patches(); ++p)
    if (busy[std::size_t(p)]) around(p, [&](int other) { levels[std::size_t(other)] = finest; });
  for (int level = finest; level > 1; --level)
    for (int p = 0; p < patches(); ++p)
      if (levels[std::size_t(p)] == level)
        around(p, [&](int other) { levels[std::size_t(other)] = std::max(levels[std::size_t(other)], level - 1); });
  return levels;
}

// Neighbours whose levels differ by one at most, before and as wanted, still do afterwards.
std::vector<int> Grid::towards(const std::vector<int>& wanted) const {
  std::vector<int> levels = wanted;
  for (std::size_t p = 0; p < levels.size(); ++p) levels[p] = std::clamp(levels[p], levels_[p] - 1, levels_[p] + 1);
  return levels;
}

}  // namespace amr
