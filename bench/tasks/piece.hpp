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

// Heat in a rod: sweeps over its cells, each of which relaxes to its neighbours and to what it is given. The same bits wherever it runs.
inline void relax(const double* in, double* out, uint64_t count, uint64_t rounds) {
  for (uint64_t i = 0; i < count; ++i) out[i] = 0.5 * in[i] + 1;
  for (uint64_t round = 0; round < rounds; ++round) {
    for (uint64_t i = 1; i + 1 < count; ++i) out[i] = 0.45 * (out[i - 1] + out[i + 1]) + 0.1 * in[i];
  }
}
