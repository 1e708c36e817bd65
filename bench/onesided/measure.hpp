// SPDX-License-Identifier: BSD-3-Clause
// The three times of one operation, size and kind of target, repeated in turns.
#pragma once

#include <cstdint>

#include "../collectives/times.hpp"
#include "options.hpp"

namespace bench {

struct Row : Times {
  std::int64_t bytes = 0;
  int messages = 1;
  Target target = Target::idle;
  std::int64_t work_iterations = 0;
  std::int64_t target_piece_ns = 0;  // median of a computing target's pieces; 0 where it is idle
  std::int64_t host_cpu_ns = 0;      // for each overlapped operation, all origins together
  std::int64_t service_cpu_ns = 0;   // for each operation, overlapped or not, all helper processes together
  bool verified = true;              // true too when nothing was checked
};

// Collective; the row is the same on all ranks. index: its number among sizes x targets, the targets running fastest.
Row measure(const Options& options, std::size_t index, std::int64_t piece_iterations);

// Collective: how much a computing target works between two calls; the same on all ranks.
std::int64_t choose_piece(const Options& options);

}  // namespace bench
