// SPDX-License-Identifier: BSD-3-Clause
#include "ops/programs/program.hpp"

#include <algorithm>

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

// ---- a service on another machine ----------------------------------------------------------------------------------

using Ranges = std::vector<memory::Range>;  // addresses

constexpr uint32_t kOfClient = 1;  // Place::file: the client's memory; all other places are here

memory::Range range(uint64_t address, uint64_t bytes) { return {static_cast<int64_t>(address), bytes}; }

// By vector, how many of its elements there are in the program.
std::vector<uint64_t> lengths(const Program& program) {
  std::vector<uint64_t> out(program.vectors.size(), program.vector.rows);
  for (const MatrixRows& rows : program.matrices) out[rows.source] = std::max(out[rows.source], rows.shape.columns);
  return out;
}

Ranges what_comes(const Program& program) {
  const std::vector<uint64_t> length = lengths(program);
  std::vector<bool> comes(length.size(), false);
  const auto& crossing = program.crossing;
  if (crossing) {
    for (const uint32_t vector : crossing->in) comes[vector] = true;
  } else {
    for (const MatrixRows& rows : program.matrices) comes[rows.source] = true;
    for (const auto& statement : program.vector.statements) {
      for (const kernels::Term& term : statement.terms) comes[term.vector] = true;
    }
  }
  Ranges out{range(program.scalars, program.vector.scalars * sizeof(double))};
  for (size_t i = 0; i < comes.size(); ++i) {
    if (comes[i]) out.push_back(range(program.vectors[i], length[i] * sizeof(double)));
  }
  for (const MatrixRows& rows : program.matrices) {
    if (crossing && !crossing->matrices) break;
    out.push_back(range(rows.offsets, (rows.shape.rows + 1) * sizeof(int32_t)));
    out.push_back(range(rows.columns, rows.shape.entries * sizeof(int32_t)));
    out.push_back(range(rows.values, rows.shape.entries * sizeof(double)));
  }
  return out;
}

Ranges what_goes_back(const Program& program) {
  const uint64_t row = sizeof(double);
  std::vector<bool> updated(program.vectors.size(), false), multiplied(program.vectors.size(), false);
  for (const auto& statement : program.vector.statements) {
    if (statement.kind == OFFPATH_UPDATE) updated[statement.target] = true;
  }
  for (const MatrixRows& rows : program.matrices) multiplied[rows.target] = true;
  std::vector<bool> goes(program.vectors.size(), !program.crossing.has_value());
  if (program.crossing) {
    for (const uint32_t vector : program.crossing->out) goes[vector] = true;
  }
  Ranges out{range(program.scalars, program.vector.scalars * sizeof(double))};
  for (size_t i = 0; i < goes.size(); ++i) {
    const bool whole = updated[i] || (program.crossing && !multiplied[i]);
    if (goes[i] && whole) out.push_back(range(program.vectors[i], program.vector.rows * row));
  }
  for (const MatrixRows& rows : program.matrices) {
    if (!goes[rows.target] || updated[rows.target]) continue;
    out.push_back(range(program.vectors[rows.target] + rows.first_row * row, rows.shape.rows * row));
  }
  return out;
}

// Runs the graph on memory here, between what comes and what goes back.
void run_there(graph::Graph& graph, const Ranges& comes, const Ranges& goes_back, const Far& far) {
  const auto own = static_cast<uint32_t>(graph.steps.size());
  std::vector<uint32_t> first;
  for (uint32_t i = 0; i < own; ++i) {
    if (graph.steps[i].waits == 0) first.push_back(i);
  }
  const auto place = [](const memory::Range& bytes, uint32_t file) {
    return graph::Place{static_cast<uint64_t>(bytes.offset), 0, graph::kClient, file};
  };
  for (const memory::Range& bytes : comes) {
    const uint32_t step = graph.copy(place(bytes, kOfClient), place(bytes, 0), bytes.bytes);
    for (const uint32_t next : first) graph.order(step, next);
  }
  for (const memory::Range& bytes : goes_back) {
    const uint32_t step = graph.copy(place(bytes, 0), place(bytes, kOfClient), bytes.bytes);
    for (uint32_t before = 0; before < own; ++before) graph.order(before, step);
  }
  graph.memory = far.here;
  graph.files = {far.client};
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
  const auto is_wrong = [&](uint32_t vector) { return vector >= program.vectors.size(); };
  const auto names_wrong = [&](const std::vector<uint32_t>& list) { return std::ranges::any_of(list, is_wrong); };
  if (program.crossing && (names_wrong(program.crossing->in) || names_wrong(program.crossing->out))) {
    return Status::error(OFFPATH_ERR_ARGUMENT,
                         "a vector crosses that a program of %zu does not have. Number them from 0",
                         program.vectors.size());
  }
  Status status = kernels::check(program.vector);
  for (const MatrixRows& rows : program.matrices) {
    if (status.ok()) status = check_matrix(rows, program);
  }
  return status;
}

graph::Graph expand(Program program, const Topology& topology, const Far* far) {
  graph::Graph graph;
  const Ranges comes = far != nullptr ? what_comes(program) : Ranges{};
  const Ranges goes_back = far != nullptr ? what_goes_back(program) : Ranges{};
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
  if (far != nullptr) run_there(graph, comes, goes_back, *far);
  graph.in_order = true;
  return graph;
}

}  // namespace offpath::ops
