// SPDX-License-Identifier: BSD-3-Clause
// Vector programs of a team: from what one member asked for to a graph:
//
//   [vectors come] -> multiply rows of matrices -> the pass (scalar steps, updates, dots) -> allreduce of some scalars
//   -> scalar steps [-> vectors go back]
//
// The allreduce is the collective's expansion, in the file of scalars itself, so all members get the same bits.
// Programs of a member take effect in the order of posting (Graph::in_order). Pure.
#pragma once

#include "base/result.hpp"
#include "kernels/vector_program.hpp"
#include "ops/collectives/collective.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace offpath::ops {

// A stretch of rows of a matrix in compressed rows; addresses are the client's.
struct MatrixRows {
  kernels::Matrix shape;
  uint64_t first_row = 0;
  uint64_t offsets = 0, columns = 0, values = 0;
  uint32_t source = 0, target = 0;  // vectors; the source may be longer than the program has rows
};

// As offpath_program_t, after translation.
struct Program {
  kernels::VectorProgram vector;
  uint64_t scalars = 0;           // address of the client
  std::vector<uint64_t> vectors;  // likewise
  std::vector<MatrixRows> matrices;
  uint32_t reduce_first = 0, reduce_count = 0;
  // Where the memory is not shared: vectors that come before, and go back after; nothing: all that is read, or written.
  struct Crossing {
    std::vector<uint32_t> in, out;
    bool matrices = false;  // come, too
  };
  std::optional<Crossing> crossing;
};

// Whether the arguments make sense: the client may be broken or hostile. OFFPATH_ERR_ARGUMENT and why. Whether the
// memory is shared is found out when the steps begin.
base::Status check(const Program& program);

// Of a service on another machine, which has memory of its own for programs, under the client's addresses.
struct Far {
  std::shared_ptr<memory::Port> client;  // the client's memory
  std::shared_ptr<memory::Port> here;
};

// Precondition: check() passed. far: the program works there, on what comes from the client before.
graph::Graph expand(Program program, const Topology& topology, const Far* far = nullptr);

}  // namespace offpath::ops
