// SPDX-License-Identifier: BSD-3-Clause
// The table, the verification line and the JSON file of rank 0.
#pragma once

#include <string>

#include "options.hpp"
#include "simulation.hpp"

namespace minimd {

struct Outcome {
  double seconds;              // of the timed steps
  std::vector<double> phases;  // of each phase, mean over the ranks
  OffTimes off;                // mean over the ranks
  double pairs_bytes;          // of the last lists, mean
  double share;                // the other side's part of an ordinary step, mean
  bool complete;
  double drift;  // largest difference of the total energy per atom from the first
};

// On all ranks.
Outcome gather(const Simulation& simulation);

// Empty, or one line for the user.
std::string report(const Options& options, const Simulation& simulation, const Outcome& outcome);

}  // namespace minimd
