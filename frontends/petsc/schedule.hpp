// SPDX-License-Identifier: BSD-3-Clause
// Schedule: what a process does in the iterations of a split solver, as `offpath split --schedule` writes it: lines of
// words. Setup, then two turns, as copies of vectors do.
#pragma once

#include <offpath/offpath.h>

#include <string>
#include <vector>

namespace offpath::petsc {

struct Schedule {
  // A vector program, but for its arrays; it may be moved.
  struct Program {
    std::vector<offpath_scalar_step_t> before, after;
    std::vector<offpath_statement_t> statements;
    std::vector<std::vector<offpath_term_t>> terms;
    std::vector<uint32_t> in, out, given;  // vectors, vectors, scalars of the host
    uint32_t reduce_first = 0, reduce_count = 0;

    void put_into(offpath_program_t& program) const;
  };
  enum class What { precondition, multiply, here, there, wait, test };
  struct Action {
    What what;
    uint32_t target, source;  // vectors; test: how many iterations later, a scalar
    Program program;
  };

  std::vector<std::string> vectors, scalars;
  std::vector<double> values;   // by scalar, to begin with
  std::vector<uint32_t> taken;  // scalars of the service's that the host reads
  bool result_is_there = true;  // x is the service's
  std::vector<Action> setup, turns[2];

  uint32_t vector(const std::string& name) const;
  // Nothing: read; else what is wrong with it, and in which line.
  std::string read(const std::string& text);

 private:
  class Reader;
};

}  // namespace offpath::petsc
