// SPDX-License-Identifier: BSD-3-Clause
// What does not depend on the library: where tiles lie.
#include "store.hpp"

#include <algorithm>

#include "../kit/ranks.hpp"

namespace bspmm {

int Store::owner(int number) const { return number % kit::ranks(); }

std::int64_t Store::offset(Matrix matrix, int number) const {
  const int slots = (count_ + kit::ranks() - 1) / kit::ranks();
  const int slot = int(matrix) * slots + number / kit::ranks();
  return std::int64_t(slot) * tile_ * tile_;
}

// As if there were a fourth matrix.
std::int64_t Store::elements_count() const { return offset(Matrix(int(Matrix::c) + 1), 0); }

void Store::fill(double* memory, std::uint64_t seed) const {
  std::fill_n(memory, elements_count(), 0.0);
  for (int number = kit::rank(); number < count_; number += kit::ranks())
    for (const Matrix matrix : {Matrix::a, Matrix::b})
      fill_tile(seed, matrix, number, tile_, memory + offset(matrix, number));
}

}  // namespace bspmm
