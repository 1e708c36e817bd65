// SPDX-License-Identifier: BSD-3-Clause
// The product of two tiles, the same bits whoever computes it: ranks and tasks have this one function.
#pragma once

#include <algorithm>
#include <cstddef>

#include <cblas.h>

namespace bspmm {

// C += A B, of n x n elements; into zeros, if C holds nothing yet.
inline void multiply_add(int n, bool first, const double* a, const double* b, double* c) {
  // Once: ranks and executors are the parallelism here.
  [[maybe_unused]] static const bool alone = (openblas_set_num_threads(1), true);
  if (first) std::fill_n(c, std::size_t(n) * std::size_t(n), 0.0);
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0, a, n, b, n, 1.0, c, n);
}

}  // namespace bspmm
