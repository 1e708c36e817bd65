// SPDX-License-Identifier: BSD-3-Clause
// The table, the line of the check and the JSON file of rank 0.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "kernel.hpp"
#include "options.hpp"
#include "profile.hpp"

namespace bspmm {

// Seconds of one run, over the ranks.
struct Spread {
  double avg, max;
};

struct Outcome {
  int ranks;
  std::size_t products_count, units_count;
  double total, communication;     // from the first rank's start to the last one's end; without multiplying
  std::array<Spread, kRows> rows;  // of a rank's total
  std::optional<double> error;     // see check.hpp; none: not checked

  double compute() const { return rows[int(Row::compute)].avg; }
  // How much of the shorter of computation and communication was hidden: 1 all, and less the more is left.
  double efficiency() const;
  bool good() const { return !error || *error <= 1; }
};

void print_report(const Options& options, const Outcome& outcome);
// Empty, or one line for the user.
std::string write_json(const Options& options, const Outcome& outcome);

}  // namespace bspmm
