// SPDX-License-Identifier: BSD-3-Clause
// The table, the verification line and the JSON file of rank 0.
#pragma once

#include <string>
#include <vector>

#include "options.hpp"
#include "results.hpp"
#include "simulation.hpp"

namespace amr {

struct Outcome {
  Water before, after;
  double time;                 // of the water
  double seconds;              // of the steps
  std::vector<double> phases;  // of each phase, mean over the ranks
  std::vector<std::vector<double>>
      loads;                   // from one look at where to refine to the next: seconds of each rank's patches on a core
  std::vector<int> levels;     // patches of each level, at the end
  double cell_steps, changed;  // of all ranks

  // Largest / mean of the ranks' seconds, of each stretch between two looks; and of the whole run.
  double imbalance() const;
  double overall_imbalance() const;
  // As much water as at first, to rounding.
  double lost() const;
  bool good(const Options& options) const;
};

// On all ranks.
Outcome gather(const Simulation& simulation, const Water& before, const Options& options);

// Empty, or one line for the user.
std::string report(const Options& options, const Outcome& outcome);

}  // namespace amr
