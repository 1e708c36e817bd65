// SPDX-License-Identifier: BSD-3-Clause
// Command line of amr.
#pragma once

#include <string>

namespace amr {

enum class Case { dam, wave, rest };
enum class Who { own, tasks };

struct Options {
  int across = 16, down = 4;  // patches
  int cells = 8;              // of a patch of level 0, in each direction
  int levels = 3;             // each has cells of half the width of the one before
  int steps = 200;
  int every = 4;  // steps from one look at where to refine to the next
  int work = 1;
  double tolerance = 0.05;
  Case scene = Case::dam;
  Who who = Who::own;
  std::string json;
  std::string help;  // to be shown instead of running

  static constexpr double kDeep = 2, kShallow = 1, kCourant = 0.4;
};

// Empty when the arguments are good, else one line for the user.
std::string parse_options(int argc, char** argv, Options& options);

const char* name(Case scene);
const char* name(Who who);

}  // namespace amr
