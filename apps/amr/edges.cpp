// SPDX-License-Identifier: BSD-3-Clause
#include "edges.hpp"

#include "flow.hpp"

namespace amr {
namespace {

struct Span {
  int begin, end;
};
Span ghosts_along(int n, int d) {
  if (d < 0) return {-kGhosts, 0};
  if (d > 0) return {n, n + kGhosts};
  return {0, n};
}

}  // namespace

std::size_t ghosts_count(Shape to, int dx, int dy) {
  const Span i = ghosts_along(to.n, dx), j = ghosts_along(to.n, dy);
  return std::size_t(kFields) * std::size_t(i.end - i.begin) * std::size_t(j.end - j.begin);
}

void take_ghosts(Shape from, const double* state, Shape to, int dx, int dy, double* values) {
  const Span across = ghosts_along(to.n, dx), down = ghosts_along(to.n, dy);
  for (int f = 0; f < kFields; ++f) {
    const double* const field = state + std::size_t(f) * from.field();
    for (int j = down.begin - dy * to.n; j < down.end - dy * to.n; ++j)
      for (int i = across.begin - dx * to.n; i < across.end - dx * to.n; ++i) {
        if (from.n == to.n) {
          *values++ = field[from.at(i, j)];
        } else if (from.n < to.n) {
          *values++ = field[from.at(i / 2, j / 2)];
        } else {
          const double south = field[from.at(2 * i, 2 * j)] + field[from.at(2 * i + 1, 2 * j)];
          const double north = field[from.at(2 * i, 2 * j + 1)] + field[from.at(2 * i + 1, 2 * j + 1)];
          *values++ = 0.25 * (south + north);
        }
      }
  }
}

void put_ghosts(Shape to, double* state, int dx, int dy, const double* values) {
  const Span across = ghosts_along(to.n, dx), down = ghosts_along(to.n, dy);
  for (int f = 0; f < kFields; ++f)
    for (int j = down.begin; j < down.end; ++j)
      for (int i = across.begin; i < across.end; ++i) state[std::size_t(f) * to.field() + to.at(i, j)] = *values++;
}

void mirror(Shape shape, double* state, Side side) {
  const int n = shape.n;
  const bool along_x = side == kWest || side == kEast;
  for (int f = 0; f < kFields; ++f) {
    const double sign = f == (along_x ? 1 : 2) ? -1 : 1;
    double* const field = state + std::size_t(f) * shape.field();
    for (int depth = 0; depth < kGhosts; ++depth) {
      const bool low = side == kWest || side == kSouth;
      const int ghost = low ? -1 - depth : n + depth, inner = low ? depth : n - 1 - depth;
      for (int k = -kGhosts; k < n + kGhosts; ++k)
        (along_x ? field[shape.at(ghost, k)] : field[shape.at(k, ghost)]) =
            sign * (along_x ? field[shape.at(inner, k)] : field[shape.at(k, inner)]);
    }
  }
}

std::size_t fluxes_count(Shape to) { return std::size_t(kFields) * std::size_t(to.n); }

void take_fluxes(Shape from, const double* result, Shape to, Side side, double* values) {
  constexpr Side kOpposite[kSides] = {kEast, kWest, kNorth, kSouth};
  for (int f = 0; f < kFields; ++f)
    for (int k = 0; k < to.n; ++k)
      *values++ =
          0.5 * (result[from.flux(kOpposite[side], f, 2 * k)] + result[from.flux(kOpposite[side], f, 2 * k + 1)]);
}

void correct(Shape to, double* next, const double* result, Side side, double ratio, const double* values) {
  const int n = to.n;
  const double sign = side == kWest || side == kSouth ? ratio : -ratio;
  for (int f = 0; f < kFields; ++f)
    for (int k = 0; k < n; ++k) {
      const std::size_t cell = side == kWest    ? to.at(0, k)
                               : side == kEast  ? to.at(n - 1, k)
                               : side == kSouth ? to.at(k, 0)
                                                : to.at(k, n - 1);
      next[std::size_t(f) * to.field() + cell] += sign * (*values++ - result[to.flux(side, f, k)]);
    }
}

}  // namespace amr
