// SPDX-License-Identifier: BSD-3-Clause
// The patches of the domain: squares of side 1, each with a level, neighbours of levels that differ by one at most; who owns
// which; and which levels they shall have. The same on all ranks.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "shape.hpp"

namespace amr {

class Grid {
 public:
  // base: cells of a patch of level 0 in each direction.
  Grid(int across, int down, int base, int ranks)
      : across_(across), down_(down), base_(base), ranks_(ranks), levels_(std::size_t(across) * std::size_t(down)) {}

  int across() const { return across_; }
  int down() const { return down_; }
  int patches() const { return across_ * down_; }
  int ranks() const { return ranks_; }
  // Strips along y: patches are numbered from south to north, and then from west to east.
  int x(int patch) const { return patch / down_; }
  int y(int patch) const { return patch % down_; }
  int first(int rank) const { return int(std::int64_t(patches()) * rank / ranks_); }
  int owner(int patch) const;
  // -1: a wall is there.
  int neighbour(int patch, int dx, int dy) const;

  int level(int patch) const { return levels_[std::size_t(patch)]; }
  Shape shape(int patch) const { return {base_ << level(patch)}; }
  const std::vector<int>& levels() const { return levels_; }
  void set_levels(std::vector<int> levels) { levels_ = std::move(levels); }

  // Finest where something happens and around it, then one level less from neighbour to neighbour.
  std::vector<int> wanted(const std::vector<int>& busy, int finest) const;
  // One level closer to what is wanted.
  std::vector<int> towards(const std::vector<int>& wanted) const;

 private:
  template <class Call>
  void around(int patch, Call call) const;

  int across_, down_, base_, ranks_;
  std::vector<int> levels_;
};

}  // namespace amr
