// SPDX-License-Identifier: BSD-3-Clause
// Which tiles of the square matrices A, B and C are not zero, and what A and B hold.
//
// All three have the same: a dense block of half the rows and columns, then two of a quarter each, on the diagonal (the
// shape of R. Zambre's bspmm). That is closed under multiplication, and rows of tiles differ in their work by a factor
// of four. Those tiles are numbered by rows.
#pragma once

#include <cstdint>
#include <vector>

namespace bspmm {

enum class Matrix { a, b, c };

class Pattern {
 public:
  static constexpr int kZero = -1;

  // tiles in each direction.
  explicit Pattern(int tiles);

  int tiles() const { return tiles_; }
  int count() const { return count_; }
  // kZero where the tile is.
  int number(int row, int column) const { return numbers_[std::size_t(row) * tiles_ + column]; }

 private:
  int tiles_;
  int count_ = 0;
  std::vector<int> numbers_;
};

// One product of tiles by their numbers: C += A * B.
struct Product {
  int a, b, c;
};

// All of C = A * B; products of the same C tile lie together.
std::vector<Product> products(const Pattern& pattern);

// Writes the elements of a tile, row by row, each from [-1, 1) and different for each seed, matrix and place.
void fill_tile(std::uint64_t seed, Matrix matrix, int number, int tile, double* elements);

}  // namespace bspmm
