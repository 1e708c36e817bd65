// SPDX-License-Identifier: BSD-3-Clause
#include "pattern.hpp"

namespace bspmm {
namespace {

// The finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace

Pattern::Pattern(int tiles) : tiles_(tiles), numbers_(std::size_t(tiles) * tiles, kZero) {
  const int half = (tiles + 1) / 2, quarter = half + (tiles - half + 1) / 2;
  const auto block = [&](int at) { return at < half ? 0 : at < quarter ? 1 : 2; };
  for (int row = 0; row < tiles; ++row)
    for (int column = 0; column < tiles; ++column)
      if (block(row) == block(column)) numbers_[std::size_t(row) * tiles + column] = count_++;
}

std::vector<Product> products(const Pattern& pattern) {
  std::vector<Product> all;
  for (int row = 0; row < pattern.tiles(); ++row)
    for (int column = 0; column < pattern.tiles(); ++column)
      for (int inner = 0; inner < pattern.tiles(); ++inner) {
        const int a = pattern.number(row, inner), b = pattern.number(inner, column);
        if (a != Pattern::kZero && b != Pattern::kZero) all.push_back({a, b, pattern.number(row, column)});
      }
  return all;
}

void fill_tile(std::uint64_t seed, Matrix matrix, int number, int tile, double* elements) {
  const std::uint64_t stream = mix(mix(seed) + 3 * std::uint64_t(number) + std::uint64_t(matrix));
  for (int i = 0; i < tile * tile; ++i) elements[i] = double(std::int64_t(mix(stream + i)) >> 11) * 0x1p-52;
}

}  // namespace bspmm
