// SPDX-License-Identifier: BSD-3-Clause
// How a number grows with another one. Pure.
#pragma once

#include <utility>
#include <vector>

namespace engine_bench {

using Points = std::vector<std::pair<double, double>>;  // x and y, both more than 0

// e of y = c * x ** e, by least squares of the logarithms: 0: it does not grow; 1: twice as much of the one, twice as much of the other.
double exponent(const Points& points);
// Of a constant, y = a + b * log2(x), y = a + b * x and so with x * log2(x) and x * x the first that is within three per cent at all
// points, else the nearest one; `slope`: b.
struct Form {
  const char* name;
  double slope;
};
Form form_of(const Points& points);

}  // namespace engine_bench
