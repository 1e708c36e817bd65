// SPDX-License-Identifier: BSD-3-Clause
#include "growth.hpp"

#include <algorithm>
#include <cmath>

namespace engine_bench {
namespace {

// Of y = a + b * x. Of a constant x is 0.
struct Line {
  double a, b;
};

Line line_through(const Points& points) {
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [px, py] : points) x += px, y += py;
  x /= static_cast<double>(points.size()), y /= static_cast<double>(points.size());
  for (const auto& [px, py] : points) xx += (px - x) * (px - x), xy += (px - x) * (py - y);
  const double b = xx > 0 ? xy / xx : 0;
  return {y - b * x, b};
}

double misfit(const Points& points, const Line& line) {
  double worst = 0;
  for (const auto& [x, y] : points) worst = std::max(worst, std::abs(line.a + line.b * x - y) / y);
  return worst;
}

}  // namespace

double exponent(const Points& points) {
  Points logs;
  for (const auto& [x, y] : points) logs.emplace_back(std::log(x), std::log(y));
  return line_through(logs).b;
}

Form form_of(const Points& points) {
  constexpr double kClose = 0.03;
  struct Candidate {
    const char* name;
    double (*of)(double);
  };
  static constexpr Candidate kForms[] = {{"constant", [](double) { return 0.0; }},
                                         {"log", [](double x) { return std::log2(x); }},
                                         {"linear", [](double x) { return x; }},
                                         {"n log n", [](double x) { return x * std::log2(x); }},
                                         {"square", [](double x) { return x * x; }}};
  Form best{"", 0};
  double least = INFINITY;
  for (const Candidate& form : kForms) {
    Points there;
    for (const auto& [x, y] : points) there.emplace_back(form.of(x), y);
    const Line line = line_through(there);
    const double found = misfit(there, line);
    if (found < least) best = {form.name, line.b}, least = found;
    if (least < kClose) break;
  }
  return best;
}

}  // namespace engine_bench
