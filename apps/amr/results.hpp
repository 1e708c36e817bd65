// SPDX-License-Identifier: BSD-3-Clause
// What a run has come to: how much water there is, how far it is from what is known, and a number for all of its bits.
#pragma once

#include <cstdint>
#include <optional>

#include "simulation.hpp"

namespace amr {

struct Water {
  double volume;
  std::optional<double>
      error;           // mean difference of depths from the known ones, in parts of the dam's height; none: not known
  std::uint64_t bits;  // the same where all cells are the same, whoever had them
};

// On all ranks.
Water measure(const Simulation& simulation, Case scene);

}  // namespace amr
