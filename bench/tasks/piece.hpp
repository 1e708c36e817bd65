// SPDX-License-Identifier: BSD-3-Clause
// A piece of work of the benchmark of balancing: what program and function agree on.
#pragma once

#include <cstdint>

struct Piece {
  uint64_t run_ns;   // of a wait: how long an accelerator, or a core that is elsewhere, would take
  uint64_t rounds;   // of a computation: how much there is to do
  char speeds[208];  // folder where a file named as an executor's process says how many times slower that one is
};
static constexpr const char* kPieceSignature = "piece(Piece, in double[], out double[]) 1";
