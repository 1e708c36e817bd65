// SPDX-License-Identifier: BSD-3-Clause
// Vector programs: what a Krylov solver does to its vectors between two matrix-vector products, in one pass.
//
//   scalar steps   s[r] = s[a] op s[b], in order, on a file of doubles
//   statements     update  v[t] = sum of s[k] * v[j]        (v[t] may be among them)
//                  dot     s[t] = sum over rows of v[a] * v[b]
//   matrix         v[t][rows] = A[rows] * v[s]               (compressed sparse rows, a stretch of rows)
//
// The pass runs the statements in order on a block of rows, small enough for the second-level cache, then on the next
// block: however many statements use a vector, it comes from memory once (loop fusion by blocking). A dot is summed in
// eight lanes per block, and the blocks' sums are added in order: the result depends on the vectors and their length
// only.
//
// Threads: as Kernel. Errors: check() finds all there are; no index reaches outside what it has checked.
#pragma once

#include "kernels/kernel.hpp"

#include <offpath/offpath.h>

#include <memory>
#include <vector>

namespace offpath::kernels {

struct ScalarStep {
  offpath_scalar_op_t op = OFFPATH_SCALAR_COPY;
  uint32_t result = 0, left = 0, right = 0;
};

struct Term {
  uint32_t scalar = 0;
  uint32_t vector = 0;
};

struct Statement {
  offpath_statement_kind_t kind = OFFPATH_UPDATE;
  uint32_t target = 0;
  std::vector<Term> terms;  // dot: two, without scalars
};

struct VectorProgram {
  uint64_t rows = 0;
  uint32_t scalars = 0;  // how many
  uint32_t vectors = 0;
  std::vector<ScalarStep> before;
  std::vector<Statement> statements;
  std::vector<ScalarStep> after;
};

struct Matrix {
  uint64_t rows = 0;
  uint64_t entries = 0;
  uint64_t columns = 0;  // length of the source
};

// Whether all indices exist and the kinds are known. OFFPATH_ERR_ARGUMENT and why.
base::Status check(const VectorProgram& program);

void run_scalar_steps(std::span<const ScalarStep> steps, double* scalars);

// Scalar steps `before`, then the pass. Arrays: the scalars, then the vectors (program.rows doubles each).
std::unique_ptr<Kernel> make_pass(VectorProgram program);
// Scalar steps alone. Arrays: the scalars.
std::unique_ptr<Kernel> make_scalar_steps(std::vector<ScalarStep> steps);
// Arrays: row offsets (rows + 1 x int32, from the first row's; values and columns are counted from there), columns
// (int32), values, source, target (its part). A column outside the source counts as column 0, entries outside the
// arrays as none: only a client that breaks its word writes such.
std::unique_ptr<Kernel> make_multiply(const Matrix& matrix);

}  // namespace offpath::kernels
