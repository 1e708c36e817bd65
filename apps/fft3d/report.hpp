// SPDX-License-Identifier: BSD-3-Clause
// The table, the verification line and the JSON file of rank 0.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "options.hpp"
#include "verify.hpp"

namespace fft3d {

struct Outcome {
  std::vector<std::pair<const char*, kit::OverRanks>> times;
  Errors errors;
  double energy;  // kinetic, per unit volume, at the end
  std::uint64_t checksum;
  std::size_t bytes_per_peer;  // smallest message between two different ranks
  double longest_wait;         // seconds of any rank in one call of MPI, in the timed iterations
};

// Empty, or one line for the user.
std::string report(const Options& options, const Outcome& outcome);

}  // namespace fft3d
