// SPDX-License-Identifier: BSD-3-Clause
// The table, the line of the check and the JSON file of rank 0.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "../kit/ranks.hpp"
#include "options.hpp"

namespace bspmm {

struct Outcome {
  std::size_t products_count, units_count;
  double total, communication;             // from the first rank's start to the last one's end; without multiplying
  std::array<kit::OverRanks, kRows> rows;  // seconds of one run
  std::optional<double> error;             // see check.hpp; none: not checked
  double rank_cpu = 0;                     // processor time of a rank, all its threads included
  double longest_wait = 0;                 // of any rank, in seconds

  double compute() const { return rows[int(Row::compute)].avg; }
  // How much of the shorter of computation and communication was hidden: 1 all, and less the more is left.
  double efficiency() const;
  bool good() const { return !error || *error <= 1; }
};

// Empty, or one line for the user.
std::string report(const Options& options, const Outcome& outcome);

}  // namespace bspmm
