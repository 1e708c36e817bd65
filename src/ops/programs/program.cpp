// SPDX-License-Identifier: BSD-3-Clause
#include "ops/programs/program.hpp"

#include <algorithm>
#include <optional>

namespace offpath::ops {
namespace {

using base::Status;
using graph::Compute;

bool is_misaligned(uint64_t address) { return address % sizeof(double) != 0; }

Status check_matrix(const MatrixRows& rows, const Program& program) {
  const kernels::Matrix& shape = rows.shape;
  const bool fits = rows.first_row <= program.vector.rows && shape.rows <= program.vector.rows - rows.first_row;
  if (!fits || rows.source >= program.vectors.size() || rows.target >= program.vectors.size() || shape.columns == 0 ||
      shape.entries > INT32_MAX || shape.columns > INT32_MAX || is_misaligned(rows.values) || rows.offsets % 4 != 0 ||
      rows.columns % 4 != 0) {
    return Status::error(OFFPATH_ERR_ARGUMENT,
                         "a program multiplies rows %llu + %llu with %llu entries (they must lie in its rows and be "
                         "numbered by 32 bits). Correct the matrix",
                         static_cast<unsigned long long>(rows.first_row), static_cast<unsigned long long>(shape.rows),
                         static_cast<unsigned long long>(shape.entries));
  }
  return {};
}

Compute::Array array(uint64_t address, uint64_t bytes) { return {graph::client_place(address), bytes}; }

Compute::Array scalars_of(const Program& program) {
  return array(program.scalars, program.vector.scalars * sizeof(double));
}

Compute multiply(const MatrixRows& rows, const Program& program) {
  Compute out;
  out.kernel = kernels::make_multiply(rows.shape);
  out.arrays = {
      array(rows.offsets, (rows.shape.rows + 1) * sizeof(int32_t)),
      array(rows.columns, rows.shape.entries * sizeof(int32_t)),
      array(rows.values, rows.shape.entries * sizeof(double)),
      array(program.vectors[rows.source], rows.shape.columns * sizeof(double)),
      array(program.vectors[rows.target] + rows.first_row * sizeof(double), rows.shape.rows * sizeof(double))};
  return out;
}

Compute pass(Program& program) {
  Compute out;
  out.arrays.push_back(scalars_of(program));
  for (const uint64_t address : program.vectors) {
    out.arrays.push_back(array(address, program.vector.rows * sizeof(double)));
  }
  out.kernel = kernels::make_pass(std::move(program.vector));
  return out;
}

Compute scalar_steps(const Program& program) {
  Compute out;
  out.arrays.push_back(scalars_of(program));
  out.kernel = kernels::make_scalar_steps(program.vector.after);
  return out;
}

}  // namespace

Status check(const Program& program) {
  if (program.vectors.size() != program.vector.vectors || program.vector.scalars == 0 ||
      is_misaligned(program.scalars) || std::any_of(program.vectors.begin(), program.vectors.end(), is_misaligned)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "a program has no scalars, or arrays that are not aligned to 8 bytes");
  }
  if (program.reduce_first > program.vector.scalars ||
      program.reduce_count > program.vector.scalars - program.reduce_first) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "a program sums scalars %u + %u of %u over the team. Number them from 0",
                         program.reduce_first, program.reduce_count, program.vector.scalars);
  }
  Status status = kernels::check(program.vector);
  for (const MatrixRows& rows : program.matrices) {
    if (status.ok()) status = check_matrix(rows, program);
  }
  return status;
}

graph::Graph expand(Program program, const Topology& topology) {
  graph::Graph graph;
  if (program.reduce_count > 0) {
    Collective sum;
    sum.kind = OFFPATH_ALLREDUCE;
    sum.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_F64};
    const uint64_t address = program.scalars + program.reduce_first * sizeof(double);
    sum.send = sum.recv = {{0, 0, address, program.reduce_count * sizeof(double)}};
    graph = expand(std::move(sum), topology);
  }
  std::optional<Compute> after;
  if (!program.vector.after.empty()) after = scalar_steps(program);
  std::vector<Compute> before;
  for (const MatrixRows& rows : program.matrices) before.push_back(multiply(rows, program));
  before.push_back(pass(program));
  for (auto work = before.rbegin(); work != before.rend(); ++work) graph.begin_with(graph.compute(std::move(*work)));
  if (after) graph.end_with(graph.compute(std::move(*after)));
  graph.in_order = true;
  return graph;
}

}  // namespace offpath::ops
