// SPDX-License-Identifier: BSD-3-Clause
// What a task of forces is told besides its memory: positions, list (first, neighbours), then its forces and sums.
#pragma once

namespace minimd {

struct ForcesArgument {
  int begin, end, all;  // own atoms of this task; own ones and ghosts
  int with_sums, repeats;
  double cutoff;
};

constexpr const char* kForcesSignature =
    "minimd_forces(in double x[], in int first[], in int neighbours[], out double f[], out double sums[3]) 1";
enum ForcesRange { kPositions, kFirst, kNeighbours, kForces, kSums, kForcesRanges };

}  // namespace minimd
