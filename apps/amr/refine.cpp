// SPDX-License-Identifier: BSD-3-Clause
#include "refine.hpp"

#include <algorithm>

#include "flow.hpp"

namespace amr {

bool is_busy(Shape shape, const double* state, double tolerance) {
  double low = state[shape.at(0, 0)], high = low;
  for (int j = -1; j <= shape.n; ++j)
    for (int i = -1; i <= shape.n; ++i) {
      low = std::min(low, state[shape.at(i, j)]);
      high = std::max(high, state[shape.at(i, j)]);
    }
  return high - low > tolerance;
}

void change_cells(Shape from, const double* state, Shape to, double* out) {
  const std::size_t up = std::size_t(from.stride());
  for (int f = 0; f < kFields; ++f)
    for (int j = 0; j < to.n; ++j)
      for (int i = 0; i < to.n; ++i) {
        double& cell = out[std::size_t(f) * to.field() + to.at(i, j)];
        if (to.n > from.n) {
          const double* const c = state + std::size_t(f) * from.field() + from.at(i / 2, j / 2);
          const double along = 0.25 * limited(c[0] - c[-1], c[1] - c[0]);
          const double across = 0.25 * limited(c[0] - *(c - up), c[up] - c[0]);
          cell = c[0] + (i % 2 == 0 ? -along : along) + (j % 2 == 0 ? -across : across);
        } else {
          const double* const c = state + std::size_t(f) * from.field() + from.at(2 * i, 2 * j);
          cell = 0.25 * ((c[0] + c[1]) + (c[up] + c[up + 1]));
        }
      }
}

}  // namespace amr
