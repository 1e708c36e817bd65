// SPDX-License-Identifier: BSD-3-Clause
#include "check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../kit/ranks.hpp"

namespace bspmm {
namespace {

constexpr double kUnitRoundoff = std::numeric_limits<double>::epsilon() / 2;

using Tile = std::vector<double>;

void fill(std::uint64_t seed, Matrix matrix, int number, int tile, Tile& elements) {
  if (number == Pattern::kZero) std::fill(elements.begin(), elements.end(), 0.0);
  if (number != Pattern::kZero) fill_tile(seed, matrix, number, tile, elements.data());
}

void add_product(const Tile& a, const Tile& b, int n, Tile& sum, Tile& sum_of_magnitudes) {
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < n; ++k)
      for (int j = 0; j < n; ++j) {
        const double product = a[i * n + k] * b[k * n + j];
        sum[i * n + j] += product;
        sum_of_magnitudes[i * n + j] += std::abs(product);
      }
}

}  // namespace

double largest_error(const Pattern& pattern, int tile, std::uint64_t seed, const Store& store) {
  const std::size_t elements = std::size_t(tile) * tile;
  const double terms = double(pattern.tiles()) * tile;
  Tile a(elements), b(elements);
  double worst = 0;
  for (int row = 0; row < pattern.tiles(); ++row)
    for (int column = 0; column < pattern.tiles(); ++column) {
      const int number = pattern.number(row, column);
      const double* c = number == Pattern::kZero ? nullptr : store.mine(Matrix::c, number);
      if (!c) continue;
      Tile sum(elements, 0.0), magnitudes(elements, 0.0);
      for (int inner = 0; inner < pattern.tiles(); ++inner) {
        fill(seed, Matrix::a, pattern.number(row, inner), tile, a);
        fill(seed, Matrix::b, pattern.number(inner, column), tile, b);
        add_product(a, b, tile, sum, magnitudes);
      }
      for (std::size_t i = 0; i < elements; ++i) {
        const double allowed = 2 * terms * kUnitRoundoff * magnitudes[i];
        const double error = std::abs(c[i] - sum[i]) / std::max(allowed, std::numeric_limits<double>::min());
        worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
      }
    }
  return kit::maximum(worst);
}

}  // namespace bspmm
