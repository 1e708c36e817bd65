// SPDX-License-Identifier: BSD-3-Clause
// How a patch lies in memory: its fields one after the other, each with ghosts around it; and what a time step tells of it.
#pragma once

#include <cstddef>

namespace amr {

constexpr int kGhosts = 2;
enum Side { kWest, kEast, kSouth, kNorth, kSides };

struct Shape {
  int n;  // cells in each direction

  int stride() const { return n + 2 * kGhosts; }
  std::size_t field() const { return std::size_t(stride()) * std::size_t(stride()); }
  std::size_t state() const { return 3 * field(); }
  // Ghosts are at -2, -1, n and n + 1.
  std::size_t at(int i, int j) const {
    return std::size_t(j + kGhosts) * std::size_t(stride()) + std::size_t(i + kGhosts);
  }
  // What a time step leaves besides the new state: the fluxes through its edges, and its fastest wave.
  std::size_t flux(Side side, int field, int k) const { return (std::size_t(side) * 3 + field) * std::size_t(n) + k; }
  std::size_t fastest() const { return 12 * std::size_t(n); }
  std::size_t result() const { return fastest() + 1; }
};

}  // namespace amr
