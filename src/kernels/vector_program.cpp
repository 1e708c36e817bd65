// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/vector_program.hpp"

#include "kernels/clones.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <utility>

namespace offpath::kernels {

using base::Status;

namespace {

constexpr uint64_t kBlockRows = 2048;  // 16 KiB per vector: eight of them and more fit the second-level cache
constexpr size_t kLanes = 8;

double* vector_at(Arrays arrays, uint32_t index) { return reinterpret_cast<double*>(arrays[index + 1]); }

struct Source {
  double factor;
  const double* from;
};

// The target may be one of the sources, but not overlap them otherwise: rows are independent.
template <size_t count>
[[gnu::always_inline]] inline void combine(const Source* sources, double* target, size_t rows) {
  std::array<double, count> factor;
  std::array<const double*, count> from;
  for (size_t k = 0; k < count; ++k) factor[k] = sources[k].factor, from[k] = sources[k].from;
#pragma GCC ivdep
  for (size_t i = 0; i < rows; ++i) {
    double sum = factor[0] * from[0][i];
    for (size_t k = 1; k < count; ++k) sum += factor[k] * from[k][i];
    target[i] = sum;
  }
}

OFFPATH_VECTOR_CLONES void update(const Source* sources, size_t count, double* target, size_t rows) {
  static_assert(OFFPATH_UPDATE_TERMS_MAX == 4);
  switch (count) {
    case 0:
      return static_cast<void>(std::fill_n(target, rows, 0.0));
    case 1:
      return combine<1>(sources, target, rows);
    case 2:
      return combine<2>(sources, target, rows);
    case 3:
      return combine<3>(sources, target, rows);
    default:
      return combine<4>(sources, target, rows);
  }
}

OFFPATH_VECTOR_CLONES double dot(const double* left, const double* right, size_t rows) {
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= rows; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += left[i + lane] * right[i + lane];
  }
  for (size_t lane = 0; i + lane < rows; ++lane) lanes[lane] += left[i + lane] * right[i + lane];
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

class Pass : public Kernel {
 public:
  explicit Pass(VectorProgram program) : program_(std::move(program)) {
    std::vector<bool> used(program_.vectors, false);
    for (const Statement& statement : program_.statements) {
      if (statement.kind == OFFPATH_UPDATE) used[statement.target] = true;
      if (statement.kind == OFFPATH_DOT) ++dots_;
      for (const Term& term : statement.terms) used[term.vector] = true;
    }
    const auto vectors = static_cast<uint64_t>(std::count(used.begin(), used.end(), true));
    block_bytes_ = std::min(kBlockRows, program_.rows) * vectors * sizeof(double);
  }

  uint64_t blocks() const override {
    const uint64_t rows = program_.statements.empty() ? 0 : program_.rows;
    return std::max<uint64_t>(1, (rows + kBlockRows - 1) / kBlockRows);
  }
  uint64_t block_bytes() const override { return block_bytes_; }

  Status begin(Arrays arrays) override {
    run_scalar_steps(program_.before, reinterpret_cast<double*>(arrays[0]));
    sums_.reset(new (std::nothrow) double[blocks() * dots_]);
    if (sums_ != nullptr) return {};
    return Status::error(OFFPATH_ERR_NO_MEMORY, "no memory for the sums of %llu blocks",
                         static_cast<unsigned long long>(blocks()));
  }

  void run(uint64_t block, Arrays arrays) override {
    const auto* scalars = reinterpret_cast<const double*>(arrays[0]);
    double* sum = &sums_[block * dots_];
    const uint64_t first = block * kBlockRows;
    const uint64_t rows = std::min(kBlockRows, program_.rows - first);
    for (const Statement& statement : program_.statements) {
      const auto& terms = statement.terms;
      if (statement.kind == OFFPATH_DOT) {
        *sum++ = dot(vector_at(arrays, terms[0].vector) + first, vector_at(arrays, terms[1].vector) + first, rows);
        continue;
      }
      std::array<Source, OFFPATH_UPDATE_TERMS_MAX> sources;
      for (size_t k = 0; k < terms.size(); ++k) {
        sources[k] = {scalars[terms[k].scalar], vector_at(arrays, terms[k].vector) + first};
      }
      update(sources.data(), terms.size(), vector_at(arrays, statement.target) + first, rows);
    }
  }

  void end(Arrays arrays) override {
    auto* scalars = reinterpret_cast<double*>(arrays[0]);
    size_t dot = 0;
    for (const Statement& statement : program_.statements) {
      if (statement.kind != OFFPATH_DOT) continue;
      double sum = 0;
      for (uint64_t block = 0; block < blocks(); ++block) sum += sums_[block * dots_ + dot];
      scalars[statement.target] = sum;
      ++dot;
    }
  }

 private:
  const VectorProgram program_;
  size_t dots_ = 0;
  std::unique_ptr<double[]> sums_;  // of the dots, by block
  uint64_t block_bytes_;
};

class ScalarSteps : public Kernel {
 public:
  explicit ScalarSteps(std::vector<ScalarStep> steps) : steps_(std::move(steps)) {}
  uint64_t blocks() const override { return 1; }
  uint64_t block_bytes() const override { return 0; }
  void run(uint64_t, Arrays arrays) override { run_scalar_steps(steps_, reinterpret_cast<double*>(arrays[0])); }

 private:
  const std::vector<ScalarStep> steps_;
};

Status wrong(const char* what, uint64_t index, uint64_t count) {
  return Status::error(OFFPATH_ERR_ARGUMENT, "a program names %s %llu of %llu. Number them from 0", what,
                       static_cast<unsigned long long>(index), static_cast<unsigned long long>(count));
}

Status check_steps(const std::vector<ScalarStep>& steps, uint32_t scalars) {
  for (const ScalarStep& step : steps) {
    const uint32_t last = std::max({step.result, step.left, step.right});
    if (last >= scalars) return wrong("scalar", last, scalars);
    if (step.op < OFFPATH_SCALAR_COPY || step.op > OFFPATH_SCALAR_SQRT) {
      return wrong("scalar operator", static_cast<uint64_t>(step.op), OFFPATH_SCALAR_SQRT);
    }
  }
  return {};
}

}  // namespace

Status check(const VectorProgram& program) {
  if (program.rows > (uint64_t{1} << 42)) return wrong("a row", program.rows, uint64_t{1} << 42);
  Status status = check_steps(program.before, program.scalars);
  if (status.ok()) status = check_steps(program.after, program.scalars);
  for (const Statement& statement : program.statements) {
    if (!status.ok()) break;
    const bool is_dot = statement.kind == OFFPATH_DOT;
    if (!is_dot && statement.kind != OFFPATH_UPDATE) {
      return wrong("statement kind", static_cast<uint64_t>(statement.kind), OFFPATH_DOT);
    }
    if (is_dot ? statement.terms.size() != 2 : statement.terms.size() > OFFPATH_UPDATE_TERMS_MAX) {
      return Status::error(OFFPATH_ERR_ARGUMENT,
                           "a statement has %zu terms (a dot has 2, an update at most %d). Split it in two",
                           statement.terms.size(), OFFPATH_UPDATE_TERMS_MAX);
    }
    const uint32_t targets = is_dot ? program.scalars : program.vectors;
    if (statement.target >= targets) status = wrong(is_dot ? "scalar" : "vector", statement.target, targets);
    for (const Term& term : statement.terms) {
      if (term.vector >= program.vectors) status = wrong("vector", term.vector, program.vectors);
      if (!is_dot && term.scalar >= program.scalars) status = wrong("scalar", term.scalar, program.scalars);
    }
  }
  return status;
}

void run_scalar_steps(std::span<const ScalarStep> steps, double* scalars) {
  for (const ScalarStep& step : steps) {
    const double left = scalars[step.left], right = scalars[step.right];
    double& result = scalars[step.result];
    switch (step.op) {
      case OFFPATH_SCALAR_COPY:
        result = left;
        break;
      case OFFPATH_SCALAR_ADD:
        result = left + right;
        break;
      case OFFPATH_SCALAR_SUBTRACT:
        result = left - right;
        break;
      case OFFPATH_SCALAR_MULTIPLY:
        result = left * right;
        break;
      case OFFPATH_SCALAR_DIVIDE:
        result = left == 0 && right == 0 ? 0 : left / right;
        break;
      case OFFPATH_SCALAR_SQRT:
        result = std::sqrt(left);
        break;
    }
  }
}

std::unique_ptr<Kernel> make_pass(VectorProgram program) { return std::make_unique<Pass>(std::move(program)); }

std::unique_ptr<Kernel> make_scalar_steps(std::vector<ScalarStep> steps) {
  return std::make_unique<ScalarSteps>(std::move(steps));
}

}  // namespace offpath::kernels
