// SPDX-License-Identifier: BSD-3-Clause
// Rows of a sparse matrix times a vector.
#include "kernels/vector_program.hpp"

#include <algorithm>
#include <cstring>

namespace offpath::kernels {
namespace {

constexpr uint64_t kBlockEntries = 24 << 10;  // about 300 KB of values and columns

class Multiply : public Kernel {
 public:
  explicit Multiply(const Matrix& matrix) : matrix_(matrix) {
    const uint64_t per_row = std::max<uint64_t>(1, matrix.entries / std::max<uint64_t>(1, matrix.rows));
    block_rows_ = std::max<uint64_t>(1, kBlockEntries / per_row);
  }
  uint64_t blocks() const override { return std::max<uint64_t>(1, (matrix_.rows + block_rows_ - 1) / block_rows_); }
  uint64_t block_bytes() const override { return kBlockEntries * (sizeof(double) + sizeof(int32_t)); }

  void run(uint64_t block, Arrays arrays) override {
    const auto* offsets = reinterpret_cast<const volatile int32_t*>(arrays[0]);
    const auto* columns = reinterpret_cast<const int32_t*>(arrays[1]);
    const auto* values = reinterpret_cast<const double*>(arrays[2]);
    const auto* source = reinterpret_cast<const double*>(arrays[3]);
    auto* target = reinterpret_cast<double*>(arrays[4]);
    const uint64_t begin = block * block_rows_, end = std::min(begin + block_rows_, matrix_.rows);
    const auto known_columns = static_cast<uint32_t>(std::min<uint64_t>(matrix_.columns, UINT32_MAX));
    const auto base = static_cast<uint32_t>(offsets[0]);
    for (uint64_t row = begin; row < end; ++row) {
      const auto first = static_cast<uint32_t>(offsets[row]) - base;
      const auto last = std::min<uint64_t>(static_cast<uint32_t>(offsets[row + 1]) - base, matrix_.entries);
      double sum = 0;
      for (uint64_t entry = first; entry < last; ++entry) {
        const auto column = static_cast<uint32_t>(columns[entry]);
        sum += values[entry] * source[column < known_columns ? column : 0];
      }
      target[row] = sum;
    }
  }

 private:
  const Matrix matrix_;
  uint64_t block_rows_;
};

}  // namespace

std::unique_ptr<Kernel> make_multiply(const Matrix& matrix) { return std::make_unique<Multiply>(matrix); }

}  // namespace offpath::kernels
