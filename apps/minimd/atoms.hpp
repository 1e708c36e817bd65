// SPDX-License-Identifier: BSD-3-Clause
// The atoms of a rank: own ones first, then ghosts, of which only positions and forces are known. All have mass 1.
#pragma once

#include <vector>

namespace minimd {

struct Atoms {
  int local = 0, ghost = 0;
  std::vector<double> x, v, f;  // three numbers for each atom
  int all() const { return local + ghost; }
};

}  // namespace minimd
